import type { RecordLogReader } from '../../log/record-log.js';
import { RecordLogFiles } from '../../log/record-log-files.js';
import type { TraceId } from '../../record/ids.js';
import type { CommandMeasures } from '../../run/measures/command-measures.js';
import { compareWithEarlier } from '../../run/measures/comparison.js';
import { measuresDocument } from '../../run/measures/measures-document.js';
import { readMeasures } from '../../run/measures/read-measures.js';
import { RunState } from '../../run/run-state.js';
import type { InvocationSummary, RunSummary } from '../../run/run-summary.js';
import { RUN_TRACKER_DEFAULTS } from '../../run/run-tracker-config.js';
import { parseRunNumber } from '../../storage/run-number.js';
import type { State } from '../../storage/state.js';
import type { UnnamedRun } from '../../storage/trace-catalog.js';
import { CliError } from '../cli-error.js';
import type { Invocation } from '../command-line.js';
import { EXIT, type ExitCode } from '../exit-code.js';
import { finishLeftovers } from '../finish-leftovers.js';
import { askFolderState } from '../folder-state.js';
import { refuseShared } from '../refuse-shared.js';
import { resolveForCommand } from '../resolve-for-command.js';
import { reportText } from './report-text.js';
import { RunFiles } from './run-files.js';

/**
 * What `run-bridge report` does. It reads files, and numbers of runs from the state, so a bridge may be at work on the data
 * folder; what a killed `exec` left there is finished first.
 * @throws CliError, ConfigurationError
 */
export async function reportRun(invocation: Invocation): Promise<ExitCode> {
  const { context, operands, switches } = invocation;
  const { configuration, warnings } = await resolveForCommand(invocation);
  for (const warning of warnings) context.stderr.write(`run-bridge: ${warning}\n`);
  refuseShared(configuration, 'ask any of the processes with GET /api/run-bridge/v1/runs/RUN/measures');
  await finishLeftovers(configuration, context);
  const files = new RunFiles(configuration['data-dir']);
  const recent = await files.recent();
  let damagedCount = 0;
  const reader = stoppable(
    new RecordLogFiles(configuration['data-dir'], () => {
      damagedCount += 1;
    }),
    context.stop,
  );
  const reports = [];
  const [named] = operands;
  const ask = <Answer>(question: (state: State) => Promise<Answer>) =>
    askFolderState(configuration, context.clock, question);
  const tracesOf = async (runId: number) => (await ask(({ traces }) => traces.tracesOf(runId))) ?? [];
  const places = new CommandPlaces((await ask(({ traces }) => traces.listUnnamed())) ?? []);
  for (const traceId of await findRuns(named, files, recent, tracesOf)) {
    const run = await readRun(traceId, files, reader);
    const commands = await readMeasures(reader, run);
    // A trace may hold commands of other runs, too.
    const isOwn = ({ invocation: one }: CommandMeasures) => String(places.runIdOf(traceId, one)) === named;
    for (const command of commands.some(isOwn) ? commands.filter(isOwn) : commands) {
      const earlier = await earlierLengthsMs(command.invocation, traceId, files, { recent, places });
      const comparison = compareWithEarlier(lengthMs(command), earlier);
      reports.push({ traceId, command, commandCount: run.invocations.length, comparison });
    }
  }
  // Of one log read twice, each damaged line was told twice: only whether there are any is said.
  if (damagedCount > 0) {
    context.stderr.write(
      'run-bridge: skipped lines of the record log that are not valid records; the disk damaged them\n',
    );
  }
  if (switches.has('json')) {
    const commands = reports.map(({ command, traceId, comparison }) => ({
      ...measuresDocument(command, traceId),
      comparison: comparison && {
        earlier_count: comparison.count,
        median_ms: comparison.medianMs,
        p95_ms: comparison.p95Ms,
        ratio: comparison.ratio,
        is_slow: comparison.isSlow,
      },
    }));
    context.stdout.write(`${JSON.stringify({ commands }, null, 2)}\n`);
  } else {
    context.stdout.write(reports.map(reportText).join('\n'));
  }
  return damagedCount > 0 ? EXIT.unreadable : EXIT.ok;
}

function lengthMs({ totals }: CommandMeasures): number {
  return Number(totals.lengthNano) / 1e6;
}

/** A reader that stops between two chunks. */
function stoppable(reader: RecordLogReader, stop: AbortSignal): RecordLogReader {
  return {
    lengthBytes: (traceId: TraceId) => reader.lengthBytes(traceId),
    async *read(traceId, range) {
      for await (const chunk of reader.read(traceId, range)) {
        stop.throwIfAborted();
        yield chunk;
      }
    },
  };
}

/** Earlier commands that one is compared with. */
const MAX_EARLIER = 50;

/** A command, and where its run belongs. */
interface PlacedCommand {
  readonly invocation: InvocationSummary;
  readonly job: string | null;
  readonly project: string | null;
}

/** Finds where the runs of commands belong: their steps say it, and of those that nobody named the state. */
export class CommandPlaces {
  private readonly unnamed: ReadonlyMap<string, UnnamedRun>;

  constructor(unnamed: readonly UnnamedRun[]) {
    this.unnamed = new Map(unnamed.map((run) => [`${run.traceId} ${run.commandIndex}`, run]));
  }

  /** The number of the command's run; `null` where it is not known. */
  runIdOf(traceId: TraceId, { step, index }: InvocationSummary): number | null {
    return step?.runId ?? this.unnamed.get(`${traceId} ${index}`)?.runId ?? null;
  }

  placed(traceId: TraceId, invocation: InvocationSummary): PlacedCommand {
    const place = invocation.step ?? this.unnamed.get(`${traceId} ${invocation.index}`);
    return { invocation, job: place?.job ?? null, project: place?.project ?? null };
  }
}

/**
 * How long the 50 latest earlier commands took that are of the same project and job and began with the same word, and
 * succeeded; in milliseconds, the last to start first. Commands that nobody gave a job are of one job together.
 * @param recent runs among which they are looked for
 */
export async function earlierLengthsMs(
  invocation: InvocationSummary,
  ownTraceId: TraceId,
  files: RunFiles,
  { recent, places }: { readonly recent: readonly TraceId[]; readonly places: CommandPlaces },
): Promise<readonly number[]> {
  const command = places.placed(ownTraceId, invocation);
  const earlier: InvocationSummary[] = [];
  for (const traceId of recent) {
    if (traceId === ownTraceId) continue;
    for (const other of (await files.summary(traceId))?.invocations ?? []) {
      if (isComparable(places.placed(traceId, other), command)) earlier.push(other);
    }
  }
  return earlier
    .sort((a, b) => (a.startTimeUnixNano > b.startTimeUnixNano ? -1 : 1))
    .slice(0, MAX_EARLIER)
    .map(({ startTimeUnixNano, endTimeUnixNano }) => Number(endTimeUnixNano - startTimeUnixNano) / 1e6);
}

function isComparable(other: PlacedCommand, command: PlacedCommand): boolean {
  return (
    other.invocation.verdict === 'success' &&
    other.invocation.command === command.invocation.command &&
    other.invocation.startTimeUnixNano < command.invocation.startTimeUnixNano &&
    other.job === command.job &&
    other.project === command.project
  );
}

const MIN_PREFIX = 4;
const MAX_NAMED = 5;

/**
 * The traces of the run that is meant, in the order in which they began.
 * @param named the number of a run, a trace or invocation id, its first characters (four at least), or the `--run-id` of a run
 *   of several commands; the run that received records last when left out
 * @param recent the runs among which names are looked for, newest first
 * @param tracesOf asks the state for the traces of a run by its number
 * @throws CliError when there is none, or more than one that begins so.
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
  const hint = 'check the spelling; without a run, the latest is reported, and --data-dir says where runs are';
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

/** The traces of the run with that number of which something is kept. */
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
 * A run's summary: `run.json` where it speaks of the whole record log, else summed up from the log. Then commands whose end
 * was seen have a verdict, and others, which may be at work, have none.
 * @throws CliError when no record is there.
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
