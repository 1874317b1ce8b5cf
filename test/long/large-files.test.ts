import { execFile } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { asyncBufferFromFile, parquetMetadataAsync } from 'hyparquet';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { compileSource } from '../tool/compiled-source.js';
import { writeLargeJsonl } from './large-jsonl.js';

/** A part of the file's size: who kept what was read would run out of it and die. */
const HEAP_MIB = 64;
const folder = mkdtempSync(join(tmpdir(), 'large-files-'));
const jsonl = join(folder, 'large.jsonl');
const parquet = join(folder, 'large.parquet');
let compiled: string;
let lineCount: number;

beforeAll(async () => {
  compiled = await compileSource('files/convert-file', 'otlp/json-codec');
  lineCount = writeLargeJsonl(jsonl, 100e6);
});
afterAll(() => {
  rmSync(folder, { recursive: true });
  rmSync(compiled, { recursive: true });
});

describe('a JSONL of 100 MB', () => {
  it('converts to Parquet with little memory, in row groups of at most 100,000 rows', async () => {
    await convert(parquet, 0);
    const { row_groups: groups } = await parquetMetadataAsync(await asyncBufferFromFile(parquet));
    const rowCounts = groups.map((group) => Number(group.num_rows));
    expect(Math.max(...rowCounts)).toBeLessThanOrEqual(100_000);
    expect(rowCounts.reduce((sum, count) => sum + count)).toBe(lineCount);
    expect(statSync(parquet).size).toBeLessThan(statSync(jsonl).size / 20);
  });

  it.each([1, 2, 3])('becomes the same file in %i threads', async (threads) => {
    const other = join(folder, 'threads.parquet');
    await convert(other, threads);
    expect(readFileSync(other).equals(readFileSync(parquet))).toBe(true);
  });

  it('leaves nothing behind when it is stopped while threads convert it', async () => {
    const stopped = join(folder, 'stopped.parquet');
    await run(`
        const { convertFile } = await import('${compiled}/files/convert-file.js');
        const controller = new AbortController();
        const options = { otlp, signal: controller.signal, threads: 2, onProgress: () => controller.abort() };
        const failure = await convertFile('${jsonl}', '${stopped}', options).catch((error) => error);
        if (failure?.name !== 'AbortError') throw failure ?? new Error('it went on');`);
    expect(readdirSync(folder).filter((name) => name.startsWith('stopped'))).toEqual([]);
  });

  it('comes back from that Parquet byte by byte', async () => {
    const back = join(folder, 'back.jsonl');
    await run(`
        const { convertFile } = await import('${compiled}/files/convert-file.js');
        await convertFile('${parquet}', '${back}', { otlp, signal });`);
    expect(readFileSync(back).equals(readFileSync(jsonl))).toBe(true);
  });
});

/** Converts the file in a process of its own with little memory for objects. */
function convert(output: string, threads: number): Promise<void> {
  const script = `
    const { convertFile } = await import('${compiled}/files/convert-file.js');
    await convertFile('${jsonl}', '${output}', { otlp, signal, threads: ${threads} });`;
  return run(script, [`--max-old-space-size=${HEAP_MIB}`]);
}

/** Runs a script in a process of its own. */
async function run(script: string, options: readonly string[] = []): Promise<void> {
  const whole = `
    const decoder = { decode() { throw new Error('there is no OTLP here'); } };
    const bodies = { traces: decoder, logs: decoder };
    const { JsonCodec } = await import('${compiled}/otlp/json-codec.js');
    const otlp = { codec: new JsonCodec(), bodies };
    const { signal } = new AbortController();
    ${script}`;
  await promisify(execFile)(process.execPath, [...options, '--input-type=module', '-e', whole]);
}
