import { copyFileSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TraceId } from '../../src/record/telemetry-record.js';
import { RunState } from '../../src/run/open-run.js';
import { formatRun } from '../../src/run/run-document.js';
import { RUN_TRACKER_DEFAULTS } from '../../src/run/run-tracker-config.js';
import { fromJsonl } from '../unit/run/logged-samples.js';
import { sampleFolder } from './sample-run.js';

/** Long after every command has ended, or is taken for lost. */
const LONG_AFTER_MS = 10_000_000;

/**
 * A data folder with these samples' runs in it, as a bridge leaves them: their Parquet and run.json.
 * @param atEnd gets what removes it, such as `afterAll`
 */
export function queryFolder(
  samples: readonly string[],
  atEnd: (remove: () => void) => void,
): { readonly dataFolder: string; readonly traceIds: TraceId[] } {
  const dataFolder = mkdtempSync(join(tmpdir(), 'run-bridge-query-'));
  atEnd(() => rmSync(dataFolder, { recursive: true, force: true }));
  const traceIds = samples.map((sample) => {
    const records = fromJsonl(sample);
    const [first] = records;
    if (first === undefined) throw new Error(`${sample} has no record`);
    const { traceId } = first.record;
    const state = new RunState(RUN_TRACKER_DEFAULTS);
    state.add(records, 0);
    const run = {
      traceId,
      firstSeenUnixMs: 1,
      lastSeenUnixMs: 2,
      state: 'finished' as const,
      logBytes: records.at(-1)?.endOffset ?? 0,
      invocations: state.judge(LONG_AFTER_MS).invocations,
    };
    const folder = join(dataFolder, 'runs', traceId);
    mkdirSync(folder, { recursive: true });
    copyFileSync(join(sampleFolder(sample), 'otel.parquet'), join(folder, 'telemetry.parquet'));
    writeFileSync(join(folder, 'run.json'), formatRun(run, 2));
    return traceId;
  });
  return { dataFolder, traceIds };
}
