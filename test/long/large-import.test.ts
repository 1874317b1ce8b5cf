import { mkdtempSync, readFileSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { runBridge } from '../e2e/run-bridge.js';
import { writeLargeJsonl, writeLargeTrace } from './large-jsonl.js';

const MAX_PEAK_MIB = 300;
/** When the garbage of a busy machine is collected is chance, and the highest of all moments counts: a try above the bound is repeated. */
const TRIALS = { timeout: 180_000, retry: 2 };
/** Says on standard error how much memory the process took at most. */
const SAY_PEAK = `data:text/javascript,${encodeURIComponent(
  "process.on('exit', () => console.error('peak', process.resourceUsage().maxRSS, 'KiB'))",
)}`;

let dir: string;
beforeAll(() => {
  dir = mkdtempSync(join(tmpdir(), 'run-bridge-large-'));
});
afterAll(() => rmSync(dir, { recursive: true, force: true }));

/** Imports a file into a new data folder; returns the peak resident memory in MiB. */
async function peakOf(file: string, dataFolder: string): Promise<number> {
  rmSync(join(dir, dataFolder), { recursive: true, force: true });
  const env = { NODE_OPTIONS: `--import=${SAY_PEAK}` };
  const { exitCode, stderr } = await runBridge(['import', file, '--data-dir', dataFolder, '--log-level', 'error'], {
    cwd: dir,
    env,
    timeoutMs: TRIALS.timeout,
  });
  expect({ exitCode, stderr }).toMatchObject({ exitCode: 0 });
  return Number(/peak (\d+) KiB/.exec(stderr)?.[1]) / 1024;
}

describe('a JSONL of 100 MB', () => {
  test('of many runs is imported within 300 MiB', TRIALS, async () => {
    writeLargeJsonl(join(dir, 'many.jsonl'), 100e6);
    expect(await peakOf('many.jsonl', 'many')).toBeLessThan(MAX_PEAK_MIB);
  });

  test('of one run is imported within 300 MiB: every record, the summary and the Parquet', TRIALS, async () => {
    const traceId = writeLargeTrace(join(dir, 'one.jsonl'), 100e6);
    expect(await peakOf('one.jsonl', 'one')).toBeLessThan(MAX_PEAK_MIB);
    const folder = join(dir, 'one/runs', traceId);
    expect(statSync(join(folder, 'telemetry.jsonl')).size).toBe(statSync(join(dir, 'one.jsonl')).size);
    expect(JSON.parse(readFileSync(join(folder, 'run.json'), 'utf8'))).toMatchObject({
      state: 'finished',
      steps: [{ parquet_file: 'telemetry.parquet' }],
    });
  });
});
