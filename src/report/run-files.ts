import { createReadStream } from 'node:fs';
import { readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { ARTIFACTS_FOLDER } from '../artifact/feature.js';
import { CliError, EXIT } from '../cli/command.js';
import { errorCode } from '../core/errors.js';
import { slices } from '../core/lists.js';
import type { RecordLogReader } from '../log/record-log.js';
import { listTraces } from '../log/record-log-files.js';
import type { TraceId } from '../record/telemetry-record.js';
import { RunState } from '../run/open-run.js';
import { parseRun } from '../run/parse-run.js';
import { RUN_TRACKER_DEFAULTS } from '../run/run-tracker-config.js';
import type { RunSummary } from '../run/verdict.js';
import { MANIFEST, type Manifest, readManifest } from '../storage/manifest.js';
import { parseRunNumber } from '../storage/state-tables.js';

/** Maximum number of runs whose summaries are searched for names and earlier durations. */
const MAX_RECENT = 500;
/** Files that are asked for their time at once. */
const AT_ONCE = 64;

/** The runs in a data folder as they lie there. */
export class RunFiles {
  /** @param dataFolder the data folder; runs are in its `runs/` */
  constructor(readonly dataFolder: string) {}

  traces(): Promise<readonly TraceId[]> {
    return listTraces(this.dataFolder);
  }

  /** The 500 runs that received records last, newest first. */
  async recent(): Promise<readonly TraceId[]> {
    const traces = await this.traces();
    const timed: { readonly traceId: TraceId; readonly atMs: number }[] = [];
    for (const some of slices(traces, AT_ONCE)) {
      timed.push(
        ...(await Promise.all(some.map(async (traceId) => ({ traceId, atMs: await this.lastWriteMs(traceId) })))),
      );
    }
    return timed
      .sort((a, b) => b.atMs - a.atMs)
      .slice(0, MAX_RECENT)
      .map(({ traceId }) => traceId);
  }

  /** The content of `run.json`; `undefined` if there is no readable one. */
  async summary(traceId: TraceId): Promise<RunSummary | undefined> {
    try {
      return parseRun(await readFile(join(this.dataFolder, 'runs', traceId, 'run.json'), 'utf8'));
    } catch (error) {
      if (errorCode(error) === 'ENOENT') return undefined;
      throw error;
    }
  }

  /** What the step of a run left of its project; `undefined` if there is nothing in the data folder, or it cannot be read. */
  async manifest(runId: number, stepIndex: number): Promise<Manifest | undefined> {
    const path = join(this.dataFolder, ARTIFACTS_FOLDER, String(runId), String(stepIndex), MANIFEST);
    try {
      return await readManifest(createReadStream(path));
    } catch {
      return undefined;
    }
  }

  private async lastWriteMs(traceId: TraceId): Promise<number> {
    try {
      return (await stat(join(this.dataFolder, 'runs', traceId, 'telemetry.jsonl'))).mtimeMs;
    } catch (error) {
      if (errorCode(error) === 'ENOENT') return 0;
      throw error;
    }
  }
}

const MIN_PREFIX = 4;
const MAX_NAMED = 5;

/**
 * The traces of the requested run, in the order in which they started.
 * @param named the id of a run, a trace or invocation id, its first characters (at least four), or the `--run-id` of a run
 *   of several commands; the run that received records last when left out
 * @param recent the runs that are searched for names, newest first
 * @param tracesOf returns the traces of a run by its id, from the state
 * @throws CliError if there is none, or if several begin like that.
 */
export async function findRuns(
  named: string | undefined,
  files: RunFiles,
  recent: readonly TraceId[],
  tracesOf: (runId: number) => Promise<readonly TraceId[]>,
): Promise<readonly TraceId[]> {
  const [latest] = recent;
  if (latest === undefined) {
    throw new CliError(EXIT.failed, `no run is in ${files.dataFolder}; set the folder with --data-dir`);
  }
  if (named === undefined) return [latest];
  const numbered = await keptTracesOf(named, files, tracesOf);
  if (numbered.length > 0) return await inOrder(numbered, files);
  const hex = named.replaceAll('-', '').toLowerCase();
  const isPrefix = /^[0-9a-f]+$/.test(hex) && hex.length >= MIN_PREFIX;
  const matches = isPrefix ? (await files.traces()).filter((traceId) => traceId.startsWith(hex)) : [];
  if (matches.length > 1) {
    const some = [...matches].sort().slice(0, MAX_NAMED).join(', ');
    const more = matches.length > MAX_NAMED ? ` and ${matches.length - MAX_NAMED} more` : '';
    throw new CliError(
      EXIT.failed,
      `${named} matches ${matches.length} runs; give more characters of its id: ${some}${more}`,
    );
  }
  if (matches.length === 1) return matches;
  const traces = await tracesOfRun(named, files, recent);
  if (traces.length > 0) return await inOrder(traces, files);
  const hint = 'check the spelling; run-bridge runs lists them, and --data-dir says where they are';
  throw new CliError(EXIT.failed, `no run ${JSON.stringify(named)} is in ${files.dataFolder}; ${hint}`);
}

async function tracesOfRun(named: string, files: RunFiles, recent: readonly TraceId[]): Promise<readonly TraceId[]> {
  const found: TraceId[] = [];
  for (const traceId of recent) {
    const steps = (await files.summary(traceId))?.invocations.map(({ step }) => step) ?? [];
    if (steps.some((step) => step !== null && (step.runKey === named || String(step.runId) === named)))
      found.push(traceId);
  }
  return found;
}

/** The traces of the run with that id that still have data. */
async function keptTracesOf(
  named: string,
  files: RunFiles,
  tracesOf: (runId: number) => Promise<readonly TraceId[]>,
): Promise<readonly TraceId[]> {
  const runId = parseRunNumber(named);
  if (runId === undefined) return [];
  const traces = await tracesOf(runId);
  if (traces.length === 0) return [];
  const kept = new Set(await files.traces());
  return traces.filter((traceId) => kept.has(traceId));
}

/** Traces by the start of their first command; those without a summary last. */
async function inOrder(traces: readonly TraceId[], files: RunFiles): Promise<readonly TraceId[]> {
  const timed: { readonly traceId: TraceId; readonly start: bigint | null }[] = [];
  for (const traceId of traces) {
    const starts = (await files.summary(traceId))?.invocations.map(({ startTimeUnixNano }) => startTimeUnixNano) ?? [];
    timed.push({ traceId, start: starts.reduce<bigint | null>((a, b) => (a === null || b < a ? b : a), null) });
  }
  return timed
    .sort((a, b) => (a.start === null ? 1 : b.start === null || a.start < b.start ? -1 : 1))
    .map(({ traceId }) => traceId);
}

const { quietAfterProcessMs, quietAfterInvocationMs } = RUN_TRACKER_DEFAULTS;

/**
 * A run's summary: `run.json` if it covers the whole record log, else computed from the log. Then commands that
 * ended have a verdict, and others, which may be running, have none.
 * @throws CliError if there are no records.
 */
export async function readRun(traceId: TraceId, files: RunFiles, reader: RecordLogReader): Promise<RunSummary> {
  const logBytes = await reader.lengthBytes(traceId);
  const written = await files.summary(traceId);
  if (written !== undefined && written.logBytes === logBytes) return written;
  const state = new RunState(RUN_TRACKER_DEFAULTS);
  for await (const chunk of reader.read(traceId, { fromOffset: 0, toOffset: logBytes })) state.add(chunk, 0);
  const { invocations } = state.judge(Math.max(quietAfterProcessMs, quietAfterInvocationMs));
  if (invocations.length === 0) {
    throw new CliError(
      EXIT.failed,
      `no record of ${traceId} is in ${files.dataFolder}; it has just started, or its record log is damaged`,
    );
  }
  const isFinished = invocations.every(({ verdict }) => verdict !== null);
  const seen = { firstSeenUnixMs: written?.firstSeenUnixMs ?? 0, lastSeenUnixMs: written?.lastSeenUnixMs ?? 0 };
  return { traceId, ...seen, state: isFinished ? 'finished' : 'open', logBytes, invocations };
}
