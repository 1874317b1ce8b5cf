import type { Invocation } from '../cli/command-line.js';
import { EXIT, type ExitCode } from '../cli/exit-code.js';
import { refuseShared } from '../cli/refuse-shared.js';
import { resolveForCommand } from '../cli/resolve-for-command.js';
import type { CommandHost } from '../feature.js';
import type { RecordLogReader } from '../log/record-log.js';
import { RecordLogFiles } from '../log/record-log-files.js';
import type { TraceId } from '../record/telemetry-record.js';
import { readMeasures } from '../run/measures/read-measures.js';
import { type CommandMeasures, compareWithEarlier } from '../run/measures/run-totals.js';
import type { InvocationSummary } from '../run/verdict.js';
import type { State } from '../storage/state.js';
import type { UnnamedRun } from '../storage/trace-catalog.js';
import { findRuns, RunFiles, readRun } from './run-files.js';
import { REPORT_FORMATS, textReport } from './text.js';

/** What the command needs of the program. */
export type ReportHost = Pick<CommandHost, 'finishLeftovers' | 'askState'>;

/**
 * Runs `run-bridge report`. It reads files, and ids of runs from the state, so a bridge may be running on the data
 * folder; records that a killed `exec` left there are imported first.
 * @throws CliError, ConfigurationError
 */
export async function reportRun(invocation: Invocation, host: ReportHost): Promise<ExitCode> {
  const { context, operands, switches } = invocation;
  const { configuration, warnings } = await resolveForCommand(invocation);
  for (const warning of warnings) context.stderr.write(`run-bridge: ${warning}\n`);
  refuseShared(configuration, 'ask any of the processes with GET /api/run-bridge/v1/runs/RUN/measures');
  await host.finishLeftovers(configuration, context);
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
    host.askState(configuration, context.clock, question);
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
  // Of a log that is read twice each damaged line was reported twice: only their existence is reported.
  if (damagedCount > 0) {
    context.stderr.write(
      'run-bridge: skipped lines of the record log that are not valid records; the disk damaged them\n',
    );
  }
  const [, format] = Object.entries(REPORT_FORMATS).find(([name]) => switches.has(name)) ?? [];
  context.stdout.write((format ?? textReport)(reports));
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

/** Finds the runs of commands: from their steps and, for commands without a step, from the state. */
export class CommandPlaces {
  private readonly unnamed: ReadonlyMap<string, UnnamedRun>;

  constructor(unnamed: readonly UnnamedRun[]) {
    this.unnamed = new Map(unnamed.map((run) => [`${run.traceId} ${run.commandIndex}`, run]));
  }

  /** The id of the command's run; `null` if unknown. */
  runIdOf(traceId: TraceId, { step, index }: InvocationSummary): number | null {
    return step?.runId ?? this.unnamed.get(`${traceId} ${index}`)?.runId ?? null;
  }

  placed(traceId: TraceId, invocation: InvocationSummary): PlacedCommand {
    const place = invocation.step ?? this.unnamed.get(`${traceId} ${invocation.index}`);
    return { invocation, job: place?.job ?? null, project: place?.project ?? null };
  }
}

/**
 * The durations of the 50 latest earlier successful commands of the same project and job with the same first
 * word, in milliseconds, the last to start first. Commands without a job share one job.
 * @param recent the runs that are searched
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
