import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, it } from 'vitest';
import { writeLogAsParquet } from '../../../../src/sink/parquet/log-parquet.js';
import { sampleLines, sampleRecords, writeParquet } from './samples.js';

const folder = mkdtempSync(join(tmpdir(), 'log-parquet-'));
const log = join(folder, 'telemetry.jsonl');
afterAll(() => rmSync(folder, { recursive: true }));

const ofRecords = async (sample: string) => {
  const path = join(folder, 'records.parquet');
  await writeParquet(path, sampleRecords(sample));
  return readFileSync(path);
};

it('makes the same file of a record log as of its records', async () => {
  const path = join(folder, 'whole.parquet');
  const text = `${sampleLines('build-mixed').join('\n')}\n`;
  writeFileSync(log, text);
  await writeLogAsParquet(log, Buffer.byteLength(text), path, () => {});
  expect(readFileSync(path).equals(await ofRecords('build-mixed'))).toBe(true);
});

it('leaves out what comes after the part that it is told to write, and a line that is not complete', async () => {
  const path = join(folder, 'part.parquet');
  const text = `${sampleLines('parse').join('\n')}\n`;
  for (const more of [`${sampleLines('joined')[0]}\n`, sampleLines('joined')[0]?.slice(0, 200) ?? '']) {
    writeFileSync(log, text + more);
    await writeLogAsParquet(log, Buffer.byteLength(text), path, () => {});
    expect(readFileSync(path).equals(await ofRecords('parse'))).toBe(true);
  }
});

it('passes damaged lines over and tells which they are', async () => {
  const path = join(folder, 'damaged.parquet');
  const damage: string[] = [];
  const lines = sampleLines('parse');
  const text = `${lines.slice(0, 3).join('\n')}\n{"record_ty\n${lines.slice(3).join('\n')}\n`;
  writeFileSync(log, text);
  await writeLogAsParquet(log, Buffer.byteLength(text), path, (line, reason) => damage.push(`${line}: ${reason}`));
  expect(damage).toEqual([expect.stringMatching(/^4: not JSON/)]);
  expect(readFileSync(path).equals(await ofRecords('parse'))).toBe(true);
});

it('leaves nothing behind when the log cannot be read', async () => {
  const path = join(folder, 'none.parquet');
  await expect(writeLogAsParquet(folder, 1000, path, () => {})).rejects.toThrow(/EISDIR/);
  expect(existsSync(path)).toBe(false);
  expect(readdirSync(folder).filter((name) => name.endsWith('.partial'))).toEqual([]);
});
