import { existsSync } from 'node:fs';
import { readFile, rename, rm } from 'node:fs/promises';
import { basename, join } from 'node:path';
import type { Clock } from '../core/clock.js';
import { slices } from '../core/lists.js';
import { listTraces } from '../log/record-log-files.js';
import type { TraceId, UnixNano } from '../record/telemetry-record.js';
import { parseRun } from '../run/parse-run.js';
import { formatRun } from '../run/run-document.js';
import { readRunRows } from '../run/run-row-backup.js';
import type { InvocationSummary, RunSummary } from '../run/verdict.js';
import { STATE_FILE } from '../storage/data-folder.js';
import type { NamedStep, RowStore } from '../storage/row-store.js';
import type { RunRow } from '../storage/run-store.js';
import { openSqliteState } from '../storage/sqlite-state.js';

/** Put back in one transaction. */
const AT_A_TIME = 200;
/** What a state is called while it is made. */
const MADE_ANEW = `${STATE_FILE}.partial`;
/** A database file, and the files that SQLite keeps beside it. */
const WITH_LOGS = ['', '-wal', '-shm'] as const;

/** What a state was made of. */
export interface RebuiltState {
  readonly runCount: number;
  readonly traceCount: number;
  /** The new name of the old state file; `null` if there was none. */
  readonly keptAs: string | null;
  /** The sentences for the user, one each line. */
  readonly lines: readonly string[];
}

/**
 * Makes the state file anew from the rest of the data folder, which the caller has locked. The old file is kept, and stays in its
 * place until the new one is whole.
 * @throws StoreError; the signal's reason
 */
export async function rebuildStateFile(folder: string, clock: Clock, stop?: AbortSignal): Promise<RebuiltState> {
  for (const suffix of WITH_LOGS) await rm(join(folder, MADE_ANEW + suffix), { force: true });
  const state = await openSqliteState(join(folder, MADE_ANEW));
  let rebuilt: Omit<RebuiltState, 'keptAs'>;
  try {
    rebuilt = await fillState(state.rows, folder, stop);
    // Only the file itself takes the place of the old one: nothing may be left in its log.
    await state.sync();
  } finally {
    await state.close();
  }
  return { ...rebuilt, keptAs: await replaceState(folder, clock.nowUnixMs()) };
}

/**
 * Replaces the state with the rebuilt one: a killed rebuild leaves the old one, the new one, or none, and can be repeated.
 * @returns the new name of the old state; `null` if there was none
 */
async function replaceState(folder: string, nowUnixMs: number): Promise<string | null> {
  const path = join(folder, STATE_FILE);
  const stamp = new Date(nowUnixMs).toISOString().replaceAll(/[:.]/g, '-');
  const aside = `${path}.before-${stamp}`;
  for (const suffix of WITH_LOGS) {
    if (existsSync(path + suffix)) await rename(path + suffix, aside + suffix);
  }
  await rename(join(folder, MADE_ANEW), path);
  // The driver closes the file when it is collected as garbage; until then its empty log is left.
  for (const suffix of WITH_LOGS) await rm(join(folder, MADE_ANEW + suffix), { force: true });
  return existsSync(aside) ? basename(aside) : null;
}

/** Fills an empty state with what the data folder holds. @throws StoreError; the signal's reason */
export async function fillState(
  rows: RowStore,
  folder: string,
  stop?: AbortSignal,
): Promise<Omit<RebuiltState, 'keptAs'>> {
  let runCount = 0;
  const damaged: string[] = [];
  for await (const batch of readRunRows(folder, AT_A_TIME, damaged)) {
    stop?.throwIfAborted();
    await rows.restore(batch);
    runCount += batch.length;
  }
  let traceCount = 0;
  let leftCount = 0;
  for await (const batch of keptTraces(folder, AT_A_TIME)) {
    stop?.throwIfAborted();
    await rows.restoreNamed(batch.flatMap(({ named }) => named));
    leftCount += (await rows.restoreTraces(batch.map(({ row }) => row))).length;
    traceCount += batch.length;
  }
  const lines = [
    `${runCount} runs with their numbers, steps, jobs and times; ${traceCount} traces`,
    ...(leftCount === 0 ? [] : [`${leftCount} traces are looked at again by the next start: their runs were not over`]),
    ...damaged.map((path) => `${path}: cannot be read; its run is made anew from its record log by the next start`),
    'not rebuilt, since it is nowhere else: tokens (the next start of serve takes the one in admin-token, or makes one), accounts',
    'but the first, subscriptions and what was to be delivered, how far exports were (destinations get what comes from now',
    'on), hosted runs that were to be pulled, runs of jobs that waited. Traces without run.json are judged by the next start',
  ];
  return { runCount, traceCount, lines };
}

/** A trace as described by its `run.json`. */
interface KeptTrace {
  readonly row: RunRow;
  /** Steps that its invocations are of. */
  readonly named: readonly NamedStep[];
}

/** Traces with their `run.json`, a few at a time. Those without one are left to the reader of record logs. */
async function* keptTraces(dataFolder: string, atATime: number): AsyncGenerator<readonly KeptTrace[]> {
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
