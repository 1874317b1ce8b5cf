import { existsSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { slices } from '../core/lists.js';
import { listTraces } from '../log/record-log-files.js';
import type { TraceId, UnixNano } from '../record/telemetry-record.js';
import type { NamedStep } from '../storage/row-store.js';
import type { RunRow } from '../storage/run-store.js';
import { parseRun } from './parse-run.js';
import { formatRun } from './run-document.js';
import type { InvocationSummary, RunSummary } from './verdict.js';

/** A trace as described by its `run.json`. */
export interface KeptTrace {
  readonly row: RunRow;
  /** Steps that its invocations are of. */
  readonly named: readonly NamedStep[];
}

/** Traces with their `run.json`, a few at a time. Those without one are left to the reader of record logs. */
export async function* keptTraces(dataFolder: string, atATime: number): AsyncGenerator<readonly KeptTrace[]> {
  const traceIds = await listTraces(dataFolder);
  for (const some of slices(traceIds, atATime)) {
    const batch: KeptTrace[] = [];
    for (const traceId of some) {
      const folder = join(dataFolder, 'runs', traceId);
      const text = await readFile(join(folder, 'run.json'), 'utf8').catch(() => '');
      const run = parseRun(text);
      if (run?.traceId === traceId)
        batch.push({ row: rowOf(run, folder), named: run.invocations.flatMap(namedOf(run)) });
    }
    yield batch;
  }
}

/** A run without Parquet is notified again. */
function rowOf(run: RunSummary, folder: string): RunRow {
  const isWhole = run.state === 'finished' && run.invocations.every((one) => existsSync(join(folder, one.parquetFile)));
  const { traceId, firstSeenUnixMs, lastSeenUnixMs, state, logBytes } = run;
  const times = { firstSeenUnixMs, lastSeenUnixMs };
  return { traceId, ...times, state, logBytes, summary: formatRun(run), parquetBytes: isWhole ? logBytes : null };
}

function namedOf({ traceId }: { readonly traceId: TraceId }) {
  return ({ step, rawCommand, startTimeUnixNano, endTimeUnixNano }: InvocationSummary): readonly NamedStep[] => {
    if (step === null) return [];
    const times = { startedUnixMs: toUnixMs(startTimeUnixNano), endedUnixMs: toUnixMs(endTimeUnixNano) };
    return [{ ...step, ...times, traceId, command: rawCommand === null ? [] : rawCommand.split(' ') }];
  };
}

function toUnixMs(time: UnixNano): number {
  return Number(time / 1_000_000n);
}
