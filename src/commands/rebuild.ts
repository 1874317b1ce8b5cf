import { existsSync } from 'node:fs';
import { readFile, rename, rm } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { openState } from '../app/open-state.js';
import { CliError, EXIT, type ExitCode, type Invocation } from '../cli/command.js';
import { readConfiguration, refuseShared } from '../cli/command-configuration.js';
import { slices } from '../core/lists.js';
import { cleanText } from '../core/text.js';
import { listTraces } from '../log/record-log-files.js';
import type { TraceId, UnixNano } from '../record/telemetry-record.js';
import { parseRun } from '../run/parse-run.js';
import { formatRun } from '../run/run-document.js';
import { readRunRows } from '../run/run-row-backup.js';
import type { InvocationSummary, RunSummary } from '../run/verdict.js';
import { STATE_FILE } from '../storage/data-folder.js';
import { takeDataFolder } from '../storage/data-folder-lock.js';
import type { NamedStep, RowStore } from '../storage/row-store.js';
import type { RunRow } from '../storage/run-store.js';
import { openSqliteState } from '../storage/sqlite-state.js';

/** Put back in one transaction. */
const AT_A_TIME = 200;
/** What a state is called while it is made. */
const MADE_ANEW = `${STATE_FILE}.partial`;
/** A database file, and the files that SQLite keeps beside it. */
const WITH_LOGS = ['', '-wal', '-shm'] as const;

/** What `run-bridge rebuild` does. @throws CliError, ConfigurationError, DataFolderInUseError, StoreError */
export async function rebuild(invocation: Invocation): Promise<ExitCode> {
  const { context } = invocation;
  const configuration = await readConfiguration(invocation);
  const say = (line: string) => void context.stderr.write(`${cleanText(line)}\n`);
  const folder = configuration['data-dir'];
  refuseShared(configuration, 'restore the database from a pg_dump');
  if (!existsSync(folder))
    throw new CliError(EXIT.failed, `${folder}: there is no data folder to rebuild the state from`);
  const lock = takeDataFolder(folder, context.pid, context.clock.nowUnixMs());
  try {
    const lines: string[] = [];
    const isFile = configuration['database-url'] === 'off';
    if (isFile) await removeState(folder, MADE_ANEW);
    const state = await (isFile ? openSqliteState(join(folder, MADE_ANEW)) : openState(configuration, context.clock));
    try {
      if (!(await state.rows.isEmpty())) {
        throw new CliError(
          EXIT.failed,
          'the database already holds runs and was not changed: use an empty one, and drop the other once the new one is complete',
        );
      }
      lines.push(...(await putBack(state.rows, folder, context.stop)));
    } finally {
      await state.close();
    }
    if (isFile) {
      const kept = await replaceState(folder, context.clock.nowUnixMs());
      if (kept !== null) say(`the state of before is kept as ${kept}`);
    }
    for (const line of lines) say(line);
  } finally {
    lock.release();
  }
  return EXIT.ok;
}

/**
 * Replaces the state with the rebuilt one: a killed `rebuild` leaves the old one, the new one,
 * or none, and can be repeated.
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
  return existsSync(aside) ? basename(aside) : null;
}

async function removeState(folder: string, name: string): Promise<void> {
  for (const suffix of WITH_LOGS) await rm(join(folder, name + suffix), { force: true });
}

async function putBack(rows: RowStore, folder: string, stop: AbortSignal): Promise<readonly string[]> {
  let runCount = 0;
  const damaged: string[] = [];
  for await (const batch of readRunRows(folder, AT_A_TIME, damaged)) {
    stop.throwIfAborted();
    await rows.restore(batch);
    runCount += batch.length;
  }
  const before = runCount;
  let traceCount = 0;
  let leftCount = 0;
  for await (const batch of keptTraces(folder, AT_A_TIME)) {
    stop.throwIfAborted();
    await rows.restoreNamed(batch.flatMap(({ named }) => named));
    leftCount += (await rows.restoreTraces(batch.map(({ row }) => row))).length;
    traceCount += batch.length;
  }
  return [
    `${before} runs with their numbers, steps, jobs and times; ${traceCount} traces`,
    ...(leftCount === 0 ? [] : [`${leftCount} traces are looked at again by the next start: their runs were not over`]),
    ...damaged.map((path) => `${path}: cannot be read; its run is made anew from its record log by the next start`),
    'not rebuilt, since it is nowhere else: tokens (the next start of serve takes the one in admin-token, or makes one), accounts',
    'but the first, subscriptions and what was to be delivered, how far exports were (destinations get what comes from now',
    'on), hosted runs that were to be pulled, runs of jobs that waited. Traces without run.json are judged by the next start',
  ];
}

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
