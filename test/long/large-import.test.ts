import { mkdtempSync, readFileSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { runBridge } from '../e2e/run-bridge.js';
import { writeLargeJsonl, writeLargeTrace } from './large-jsonl.js';

/** A part of the file's size: who kept what was read would run out of it and die. */
const HEAP_MIB = 64;

let dir: string;
beforeAll(() => {
  dir = mkdtempSync(join(tmpdir(), 'run-bridge-large-'));
});
afterAll(() => rmSync(dir, { recursive: true, force: true }));

/** Imports a file into a new data folder with little memory for objects. */
async function importWithLittleMemory(file: string, dataFolder: string): Promise<string> {
  const env = { NODE_OPTIONS: `--max-old-space-size=${HEAP_MIB}`, RUN_BRIDGE_MAX_MEMORY: '256MiB' };
  const args = ['import', file, '--data-dir', dataFolder, '--log-level', 'error'];
  const { exitCode, stderr } = await runBridge(args, { cwd: dir, env });
  expect({ exitCode, stderr }).toMatchObject({ exitCode: 0 });
  return stderr;
}

describe('a JSONL of 100 MB', () => {
  test('of many runs is imported with little memory', async () => {
    const lineCount = writeLargeJsonl(join(dir, 'many.jsonl'), 100e6);
    expect(await importWithLittleMemory('many.jsonl', 'many')).toContain(`: ${lineCount} records from 1 file in `);
  });

  test('of one run is imported with little memory: every record, the summary and the Parquet', async () => {
    const traceId = writeLargeTrace(join(dir, 'one.jsonl'), 100e6);
    await importWithLittleMemory('one.jsonl', 'one');
    const folder = join(dir, 'one/runs', traceId);
    expect(statSync(join(folder, 'telemetry.jsonl')).size).toBe(statSync(join(dir, 'one.jsonl')).size);
    expect(JSON.parse(readFileSync(join(folder, 'run.json'), 'utf8'))).toMatchObject({
      state: 'finished',
      steps: [{ parquet_file: 'telemetry.parquet' }],
    });
  });
});
