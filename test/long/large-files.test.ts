import { execFile } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { asyncBufferFromFile, parquetMetadataAsync } from 'hyparquet';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { compileSource } from '../tool/compiled-source.js';
import { writeLargeJsonl } from './large-jsonl.js';

const MAX_PEAK_MIB = 300;
const TIMEOUT_MS = 180_000;
const folder = mkdtempSync(join(tmpdir(), 'large-files-'));
const jsonl = join(folder, 'large.jsonl');
const parquet = join(folder, 'large.parquet');
let compiled: string;
let lineCount: number;

beforeAll(async () => {
  compiled = await compileSource('files/convert-file', 'files/import-paths', 'otlp/json-codec');
  lineCount = writeLargeJsonl(jsonl, 100e6);
}, TIMEOUT_MS);
afterAll(() => {
  rmSync(folder, { recursive: true });
  rmSync(compiled, { recursive: true });
});

describe('a JSONL of 100 MB', () => {
  it(
    'converts to Parquet within 300 MiB, in row groups of at most 100,000 rows',
    async () => {
      expect(await convertPeak(parquet, 0)).toBeLessThan(MAX_PEAK_MIB);
      const { row_groups: groups } = await parquetMetadataAsync(await asyncBufferFromFile(parquet));
      const rowCounts = groups.map((group) => Number(group.num_rows));
      expect(Math.max(...rowCounts)).toBeLessThanOrEqual(100_000);
      expect(rowCounts.reduce((sum, count) => sum + count)).toBe(lineCount);
      expect(statSync(parquet).size).toBeLessThan(statSync(jsonl).size / 20);
    },
    TIMEOUT_MS,
  );

  it.each([1, 2, 3])(
    'becomes the same file within 300 MiB in %i threads',
    async (threads) => {
      const other = join(folder, 'threads.parquet');
      expect(await convertPeak(other, threads)).toBeLessThan(MAX_PEAK_MIB);
      expect(readFileSync(other).equals(readFileSync(parquet))).toBe(true);
    },
    TIMEOUT_MS,
  );

  it(
    'leaves nothing behind when it is stopped while threads convert it',
    async () => {
      const stopped = join(folder, 'stopped.parquet');
      await peakOf(`
        const { convertFile } = await import('${compiled}/files/convert-file.js');
        const controller = new AbortController();
        const options = { otlp, signal: controller.signal, threads: 2, onProgress: () => controller.abort() };
        const failure = await convertFile('${jsonl}', '${stopped}', options).catch((error) => error);
        if (failure?.name !== 'AbortError') throw failure ?? new Error('it went on');`);
      expect(readdirSync(folder).filter((name) => name.startsWith('stopped'))).toEqual([]);
    },
    TIMEOUT_MS,
  );

  it(
    'comes back from that Parquet byte by byte',
    async () => {
      const back = join(folder, 'back.jsonl');
      await peakOf(`
        const { convertFile } = await import('${compiled}/files/convert-file.js');
        await convertFile('${parquet}', '${back}', { otlp, signal });`);
      expect(readFileSync(back).equals(readFileSync(jsonl))).toBe(true);
    },
    TIMEOUT_MS,
  );

  it(
    'is imported within 300 MiB',
    async () => {
      const peakMib = await peakOf(`
        const { importPaths } = await import('${compiled}/files/import-paths.js');
        const { systemClock: clock } = await import('${compiled}/core/clock.js');
        const consumer = { async consume() {} };
        await importPaths(['${jsonl}'], consumer, { otlp, signal, clock });`);
      expect(peakMib).toBeLessThan(MAX_PEAK_MIB);
    },
    TIMEOUT_MS,
  );
});

/** Converts the file in a process of its own and tells its peak resident memory in MiB. */
function convertPeak(output: string, threads: number): Promise<number> {
  return peakOf(`
    const { convertFile } = await import('${compiled}/files/convert-file.js');
    await convertFile('${jsonl}', '${output}', { otlp, signal, threads: ${threads} });`);
}

/** Runs a script in a process of its own and tells its peak resident memory in MiB. */
async function peakOf(script: string): Promise<number> {
  const whole = `
    const decoder = { decode() { throw new Error('there is no OTLP here'); } };
    const bodies = { traces: decoder, logs: decoder };
    const { JsonCodec } = await import('${compiled}/otlp/json-codec.js');
    const otlp = { codec: new JsonCodec(), bodies };
    const { signal } = new AbortController();
    ${script}
    console.log(process.resourceUsage().maxRSS / 1024);`;
  const { stdout } = await promisify(execFile)(process.execPath, ['--input-type=module', '-e', whole]);
  return Number(stdout);
}
