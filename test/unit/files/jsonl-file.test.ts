import { describe, expect, it } from 'vitest';
import { JsonlFile } from '../../../src/files/jsonl-file.js';
import { formatRecordLine } from '../../../src/record/record-line.js';
import { readAll, sampleLines, samplePath, temporaryFolder } from './reading.js';

const folder = temporaryFolder('jsonl-file');
const lines = sampleLines('parse');

describe('JsonlFile', () => {
  it("reads the engine's lines in their order", async () => {
    const { records, rejects, chunks } = await readAll(new JsonlFile(samplePath('build-mixed'), 0));
    expect(records.map(formatRecordLine)).toEqual(sampleLines('build-mixed'));
    expect(rejects).toEqual([]);
    expect(chunks.at(-1)?.bytesRead).toBe(594_549);
  });

  it('takes CRLF, blank lines and a last line without a line break', async () => {
    const path = folder.write('crlf.jsonl', `\r\n${lines[0]}\r\n\r\n  \n${lines[1]}`);
    const { records, rejects } = await readAll(new JsonlFile(path, 0));
    expect(records.map(formatRecordLine)).toEqual(lines.slice(0, 2));
    expect(rejects).toEqual([]);
  });

  it('tells the lines that are no records, a half last one among them, and goes on', async () => {
    const path = folder.write('half.jsonl', `${lines[0]}\nnonsense\n{"a":1}\n${lines[1]}\n${lines[2]?.slice(0, 99)}`);
    const { records, rejects } = await readAll(new JsonlFile(path, 0));
    expect(records).toHaveLength(2);
    expect(rejects.map((reject) => reject.place)).toEqual(['line 2', 'line 3', 'line 5']);
    expect(rejects[0]?.reason).toMatch(/not JSON/);
  });

  it('passes over a line that is nested so deep that writing it again would exhaust the stack', async () => {
    const nested = (levels: number) =>
      (lines[0] ?? '').replace(
        '"attributes":{',
        `"attributes":{"x":"[{\\"[","y":${'['.repeat(levels)}${']'.repeat(levels)},`,
      );
    const path = folder.write('deep.jsonl', `${nested(50_000)}\n${nested(150)}\n`);
    const { records, rejects } = await readAll(new JsonlFile(path, 0));
    expect(records.map(formatRecordLine)).toEqual([nested(150)]);
    expect(rejects).toMatchObject([{ place: 'line 1', reason: 'nested deeper than 200 levels', count: 1 }]);
  });

  it('passes over a line beyond the limit, wherever its pieces fall', async () => {
    const long = `"${'x'.repeat(3_000_000)}"`;
    const path = folder.write('long.jsonl', `${lines[0]}\n${long}\n${lines[1]}\n${long}`);
    const { records, rejects } = await readAll(new JsonlFile(path, 0, 1_000_000));
    expect(records.map(formatRecordLine)).toEqual(lines.slice(0, 2));
    expect(rejects).toMatchObject([
      { place: 'line 2', reason: 'longer than 1000000 bytes', count: 1 },
      { place: 'line 4', reason: 'longer than 1000000 bytes', count: 1 },
    ]);
  });

  it('keeps a character whole that two reads share', async () => {
    const record = (lines[0] ?? '').replace('dbt process', 'ü'.repeat(600_000));
    // The second one's characters begin at odd places.
    const path = folder.write('umlauts.jsonl', `x${record}\n${record}\n`);
    const { records } = await readAll(new JsonlFile(path, 0));
    expect(records.map(formatRecordLine)).toEqual([record, record]);
  });

  it('cuts several traces in one file into batches of one trace', async () => {
    const other = lines.map((line) => line.replaceAll('01a1fb8ef1fb7c6386c8a17017d2bf4b', 'a'.repeat(32)));
    const path = folder.write('two.jsonl', [...lines, ...other].map((line) => `${line}\n`).join(''));
    const { chunks } = await readAll(new JsonlFile(path, 0));
    const batches = chunks.flatMap((chunk) => chunk.delivery.batches);
    expect(batches.map((batch) => [batch.traceId, batch.records.length])).toEqual([
      ['01a1fb8ef1fb7c6386c8a17017d2bf4b', 63],
      ['a'.repeat(32), 63],
    ]);
  });

  it('reads an empty file as nothing', async () => {
    expect((await readAll(new JsonlFile(folder.write('empty.jsonl', ''), 0))).records).toEqual([]);
  });
});
