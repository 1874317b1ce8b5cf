import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DuckDBInstance } from '@duckdb/node-api';
import { parquetMetadata } from 'hyparquet';
import { afterAll, describe, expect, it } from 'vitest';
import { LogParquetWriter } from '../../../src/parquet/log-parquet.js';
import { sampleLines, sampleRecords, writeParquet } from './samples.js';

const folder = mkdtempSync(join(tmpdir(), 'log-parquet-'));
const log = join(folder, 'telemetry.jsonl');
/** One for all files, as the thread has it. */
const writer = new LogParquetWriter();
afterAll(() => rmSync(folder, { recursive: true }));

const ofRecords = async (sample: string) => {
  const path = join(folder, 'records.parquet');
  await writeParquet(path, sampleRecords(sample));
  return rowGroupsOf(path);
};

/** All of a file but its footer, which says what part of the log it is made of. */
function rowGroupsOf(path: string): Buffer {
  const bytes = readFileSync(path);
  return bytes.subarray(0, bytes.length - 8 - bytes.readUInt32LE(bytes.length - 8));
}

it('makes the same file of a record log as of its records', async () => {
  const path = join(folder, 'whole.parquet');
  const text = `${sampleLines('build-mixed').join('\n')}\n`;
  writeFileSync(log, text);
  await writer.write(log, Buffer.byteLength(text), path, () => {});
  expect(rowGroupsOf(path).equals(await ofRecords('build-mixed'))).toBe(true);
});

it('leaves out what comes after the part that it is told to write, and a line that is not complete', async () => {
  const path = join(folder, 'part.parquet');
  const text = `${sampleLines('parse').join('\n')}\n`;
  for (const more of [`${sampleLines('joined')[0]}\n`, sampleLines('joined')[0]?.slice(0, 200) ?? '']) {
    writeFileSync(log, text + more);
    await writer.write(log, Buffer.byteLength(text), path, () => {});
    expect(rowGroupsOf(path).equals(await ofRecords('parse'))).toBe(true);
  }
});

it('passes damaged lines over and tells which they are', async () => {
  const path = join(folder, 'damaged.parquet');
  const damage: string[] = [];
  const lines = sampleLines('parse');
  const text = `${lines.slice(0, 3).join('\n')}\n{"record_ty\n${lines.slice(3).join('\n')}\n`;
  writeFileSync(log, text);
  await writer.write(log, Buffer.byteLength(text), path, (line, reason) => damage.push(`${line}: ${reason}`));
  expect(damage).toEqual([expect.stringMatching(/^4: not JSON/)]);
  expect(rowGroupsOf(path).equals(await ofRecords('parse'))).toBe(true);
});

it('leaves nothing behind when the log cannot be read', async () => {
  const path = join(folder, 'none.parquet');
  await expect(writer.write(folder, 1000, path, () => {})).rejects.toThrow(/EISDIR/);
  expect(existsSync(path)).toBe(false);
  expect(readdirSync(folder).filter((name) => name.endsWith('.partial'))).toEqual([]);
});

describe('a log that has grown', () => {
  const lines = sampleLines('build-mixed');
  const bytesOf = (count: number) => Buffer.byteLength(`${lines.slice(0, count).join('\n')}\n`);
  const write = async (path: string, count: number) => {
    writeFileSync(log, `${lines.slice(0, count).join('\n')}\n`);
    await writer.write(log, bytesOf(count), path, () => {});
  };
  const groupsOf = (path: string) => {
    const bytes = readFileSync(path);
    const metadata = parquetMetadata(new Uint8Array(bytes).buffer);
    return metadata.row_groups.map(({ num_rows }) => Number(num_rows));
  };

  it('has what came since in row groups of its own, and the others as they were', async () => {
    const path = join(folder, 'grown.parquet');
    await write(path, lines.length - 1);
    const before = rowGroupsOf(path);
    await write(path, lines.length);
    expect(groupsOf(path)).toEqual([lines.length - 1, 1]);
    expect(rowGroupsOf(path).subarray(0, before.length).equals(before)).toBe(true);
  });

  it('has the same rows and few row groups, however often something came late', async () => {
    const path = join(folder, 'often.parquet');
    const whole = join(folder, 'whole.parquet');
    const first = lines.length - 32;
    await write(path, first);
    let writtenCount = 0;
    for (let count = first + 1; count <= lines.length; count += 1) {
      const before = groupsOf(path);
      await write(path, count);
      const after = groupsOf(path);
      const keptCount = after.findIndex((rows, at) => rows !== before[at]);
      writtenCount += after.slice(keptCount).reduce((sum, rows) => sum + rows, 0);
      expect(after.length).toBeLessThan(10);
      expect(after[0]).toBe(first);
    }
    // 32 records that come one by one: each was written a few times, and the others once.
    expect(writtenCount).toBeLessThan(32 * 7);
    await writeParquet(whole, sampleRecords('build-mixed'));
    const duckdb = await (await DuckDBInstance.create()).connect();
    for (const [one, other] of [
      [path, whole],
      [whole, path],
    ] as const) {
      const missing = `SELECT count(*) FROM (SELECT * FROM '${one}' EXCEPT ALL SELECT * FROM '${other}')`;
      expect((await duckdb.runAndReadAll(missing)).getRows()).toEqual([[0n]]);
    }
    expect(groupsOf(path).reduce((sum, rows) => sum + rows, 0)).toBe(lines.length);
  });

  it('is written as a whole where the file is damaged, of another log, or has all of it already', async () => {
    const path = join(folder, 'anew.parquet');
    await write(path, lines.length - 1);
    const bytes = readFileSync(path);
    for (const spoil of [
      () => writeFileSync(path, bytes.subarray(0, bytes.length - 20)),
      () => writeFileSync(path, ''),
      () => writeParquet(path, sampleRecords('parse')),
      () => write(path, lines.length),
    ]) {
      await spoil();
      await write(path, lines.length);
      expect(groupsOf(path)).toEqual([lines.length]);
    }
  });
});
