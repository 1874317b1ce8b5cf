import { mkdtempSync, readFileSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { runBridge } from '../e2e/run-bridge.js';
import { writeLargeJsonl, writeLargeTrace } from './large-jsonl.js';

const MAX_PEAK_MIB = 300;
const TIMEOUT_MS = 180_000;
/** Says on standard error how much memory the process took at most. */
const SAY_PEAK = `data:text/javascript,${encodeURIComponent(
  "process.on('exit', () => console.error('peak', process.resourceUsage().maxRSS, 'KiB'))",
)}`;

let dir: string;
beforeAll(() => {
  dir = mkdtempSync(join(tmpdir(), 'run-bridge-large-'));
});
afterAll(() => rmSync(dir, { recursive: true, force: true }));

/** Runs a command to its end; returns its peak resident memory in MiB. */
async function peakOf(args: readonly string[]): Promise<number> {
  const env = { NODE_OPTIONS: `--import=${SAY_PEAK}` };
  const { exitCode, stderr } = await runBridge([...args, '--log-level', 'error'], {
    cwd: dir,
    env,
    timeoutMs: TIMEOUT_MS,
  });
  expect({ exitCode, stderr }).toMatchObject({ exitCode: 0 });
  return Number(/peak (\d+) KiB/.exec(stderr)?.[1]) / 1024;
}

describe('a JSONL of 100 MB', () => {
  test(
    'of many runs is imported within 300 MiB',
    async () => {
      writeLargeJsonl(join(dir, 'many.jsonl'), 100e6);
      expect(await peakOf(['import', 'many.jsonl', '--data-dir', 'many'])).toBeLessThan(MAX_PEAK_MIB);
    },
    TIMEOUT_MS,
  );

  test(
    'of one run is imported within 300 MiB: every record, the summary and the Parquet',
    async () => {
      const traceId = writeLargeTrace(join(dir, 'one.jsonl'), 100e6);
      expect(await peakOf(['import', 'one.jsonl', '--data-dir', 'one'])).toBeLessThan(MAX_PEAK_MIB);
      const folder = join(dir, 'one/runs', traceId);
      expect(statSync(join(folder, 'telemetry.jsonl')).size).toBe(statSync(join(dir, 'one.jsonl')).size);
      expect(JSON.parse(readFileSync(join(folder, 'run.json'), 'utf8'))).toMatchObject({
        state: 'finished',
        steps: [{ parquet_file: 'telemetry.parquet' }],
      });
    },
    TIMEOUT_MS,
  );
});
