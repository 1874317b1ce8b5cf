import { existsSync, statSync } from 'node:fs';
import { resolve } from 'node:path';
import { failingSince, type SinceTexts, sinceTexts } from '../api/failing-since.js';
import { RunMeasures } from '../api/run-measures.js';
import { CliError, EXIT, type ProcessContext } from '../cli/command.js';
import { refuseShared } from '../cli/command-configuration.js';
import { otlpReading } from '../cli/otlp-reading.js';
import type { Configuration } from '../config/configuration.js';
import { silentLogger } from '../core/logger.js';
import { cleanLine } from '../core/text.js';
import type { CommandHost } from '../feature.js';
import { openTelemetryFile, type RecordSource } from '../files/feature.js';
import type { LoggedRecord, RecordLogReader } from '../log/record-log.js';
import { RecordLogFiles } from '../log/record-log-files.js';
import type { TraceId } from '../record/telemetry-record.js';
import type { RedactionLevel } from '../redaction/known-names.js';
import { learnNames, Redactor } from '../redaction/redactor.js';
import { commandDigest } from '../run/measures/command-digest.js';
import { isBad } from '../run/measures/execution.js';
import { readMeasures } from '../run/measures/read-measures.js';
import { type CommandScope, scopeOf } from '../run/measures/run-scope.js';
import { type CommandMeasures, compareWithEarlier } from '../run/measures/run-totals.js';
import { withDependencies } from '../run/measures/upstream.js';
import { RunState } from '../run/open-run.js';
import { RUN_TRACKER_DEFAULTS } from '../run/run-tracker-config.js';
import type { InvocationSummary } from '../run/verdict.js';
import { FIRST_ACCOUNT_ID } from '../storage/account-store.js';
import type { State } from '../storage/state.js';
import type { UnnamedRun } from '../storage/trace-catalog.js';
import { type CommandReport, redactedReport } from './content.js';
import { findRuns, RunFiles, readRun } from './run-files.js';

/** What commands that report runs need of the program. */
export type ReportHost = Pick<CommandHost, 'finishLeftovers' | 'askState'>;

/**
 * Reads what an operand names, a run or a file; damaged lines are mentioned on standard error.
 * @param level how much of a run's texts is shown; `null` for all
 * @throws CliError
 */
export async function findReports(
  named: string | undefined,
  level: ShownLevel,
  deps: FolderDeps,
): Promise<FoundReports> {
  const { context } = deps;
  const isFile = named !== undefined && isTelemetryFile(resolve(context.workingDir, named));
  const found = isFile
    ? await reportsOfFile(resolve(context.workingDir, named), level, deps)
    : await reportsOfFolder(named, level, deps);
  if (found.isDamaged) {
    const where = isFile ? named : 'the record log';
    const cause = isFile ? '' : '; the disk damaged them';
    context.stderr.write(`run-bridge: skipped lines of ${cleanLine(where)} that are not valid records${cause}\n`);
  }
  return found;
}

/** What is read for reports: redacted already, where the redactor redacts. */
export interface FoundReports {
  readonly reports: readonly CommandReport[];
  /** Whether lines were skipped because they are no records. */
  readonly isDamaged: boolean;
  /** The number of the run in the state; `null` where it has none, or a file was read. */
  readonly runId: number | null;
  /** What its commands worked on. */
  readonly scopes: readonly CommandScope[];
}

/** A command with the critical path that its nodes' dependencies give, where the data folder has them. */
export async function withManifest(
  command: CommandMeasures,
  runId: number | null,
  files: RunFiles,
): Promise<CommandMeasures> {
  if (runId === null || command.nodes.length === 0) return command;
  const manifest = await files.manifest(runId, command.invocation.step?.stepIndex ?? 1);
  return manifest === undefined ? command : withDependencies(command, manifest);
}

/** What reports of a data folder are read with. */
export interface FolderDeps {
  readonly configuration: Configuration;
  readonly host: ReportHost;
  readonly context: ProcessContext;
}

async function reportsOfFolder(
  named: string | undefined,
  level: ShownLevel,
  { configuration, host, context }: FolderDeps,
): Promise<FoundReports> {
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
  const reports: CommandReport[] = [];
  const scopes: CommandScope[] = [];
  let ownRunId: number | null = null;
  const ask = <Answer>(question: (state: State) => Promise<Answer>) =>
    host.askState(configuration, context.clock, question);
  const tracesOf = async (runId: number) => (await ask(({ traces }) => traces.tracesOf(runId))) ?? [];
  const places = new CommandScopes((await ask(({ traces }) => traces.listUnnamed())) ?? []);
  for (const traceId of await findRuns(named, files, recent, tracesOf)) {
    const run = await readRun(traceId, files, reader);
    const redactor = new Redactor(level ?? 'off');
    const commands = await readMeasures(reader, run, (record) => learnNames(record, redactor));
    // A trace may hold commands of other runs, too.
    const isOwn = ({ invocation: one }: CommandMeasures) => String(places.runIdOf(traceId, one)) === named;
    for (const measured of commands.some(isOwn) ? commands.filter(isOwn) : commands) {
      const runId = places.runIdOf(traceId, measured.invocation);
      const command = await withManifest(measured, runId, files);
      const earlier = await earlierLengthsMs(command.invocation, traceId, files, { recent, places });
      const comparison = compareWithEarlier(lengthMs(command), earlier);
      ownRunId ??= runId;
      scopes.push(scopeOf(command));
      const since =
        runId === null ? undefined : await ask((state) => sinceOf(runId, command, { state, files, reader }));
      const report = {
        ...{ traceId, command, commandCount: run.invocations.length, comparison },
        ...(since !== undefined && { since }),
      };
      reports.push(level === null ? report : redactedReport(report, redactor));
    }
  }
  // Of a log that is read twice each damaged line was reported twice: only their existence is reported.
  return { reports, isDamaged: damagedCount > 0, runId: ownRunId, scopes };
}

/** Failed nodes of which it is looked up since when they fail, and earlier runs that are read for it because nobody has measured them. */
const MAX_SINCE = 50;

const MAX_READ = 5;

/** Since when a failed run of the first account and its nodes fail, from what is stored of earlier runs, and the logs of a few. Stores nothing. */
async function sinceOf(
  runId: number,
  command: CommandMeasures,
  of: { readonly state: State; readonly files: RunFiles; readonly reader: RecordLogReader },
): Promise<SinceTexts | undefined> {
  const { verdict } = command.invocation;
  const { catalog } = of.state;
  const run = verdict === 'error' ? await catalog.findRun(FIRST_ACCOUNT_ID, runId) : undefined;
  if (run === undefined) return undefined;
  const ids = command.nodes.filter((node) => node.isExecuted && isBad(node.verdict)).map(({ uniqueId }) => uniqueId);
  const deps = { catalog, measures: readOnlyMeasures(of) };
  return sinceTexts(await failingSince({ run, commands: [command] }, ids.slice(0, MAX_SINCE), deps, true));
}

/** Measures of runs as they are stored, and of a few that nobody has measured, from their logs. Stores nothing. */
export function readOnlyMeasures(of: {
  readonly state: Pick<State, 'measures'>;
  readonly files: RunFiles;
  readonly reader: RecordLogReader;
}): Pick<RunMeasures, 'digestsOf' | 'ofSteps'> {
  const { measures: store } = of.state;
  const stored = {
    isUsed: async () => true,
    find: async (traceId: TraceId) => {
      const row = await store.find(traceId);
      return row === undefined || row.content === null ? undefined : row;
    },
    save: async () => {},
  };
  const tracker = { find: (traceId: TraceId) => of.files.summary(traceId) };
  const measures = new RunMeasures({ store: stored, tracker, reader: of.reader, logger: silentLogger });
  let left = MAX_READ;
  const digestsOf = async (steps: Parameters<RunMeasures['digestsOf']>[0]) => {
    const known = await measures.digestsOf(steps);
    if (known !== undefined || left === 0) return known;
    left -= 1;
    const read = await measures.ofSteps(steps);
    return read.map((one) => commandDigest(one.command, (text) => text));
  };
  return { digestsOf, ofSteps: (steps) => measures.ofSteps(steps) };
}

/** How much of a run's texts is shown; `null` for all of it, however long it is. */
export type ShownLevel = RedactionLevel | null;

/** Runs of one file that are reported. */
const MAX_TRACES = 100;

/** Whether an operand names a file of telemetry, and not a run. */
function isTelemetryFile(path: string): boolean {
  return /\.(jsonl|json|ndjson|parquet)(\.(gz|zst))?$/i.test(path) && existsSync(path);
}

/**
 * Reads the runs of a file: the engine's JSONL or Parquet, or OTLP as JSON lines. It is read twice, and once more where several commands share a trace.
 * @param only the runs that are wanted; all if left out
 * @throws CliError where it holds no records, or more than 100 runs, and SourceError
 */
export async function reportsOfFile(
  path: string,
  level: ShownLevel,
  { context: { stop }, configuration }: Pick<FolderDeps, 'context' | 'configuration'>,
  only?: ReadonlySet<TraceId>,
): Promise<FoundReports> {
  if (!statSync(path).isFile()) throw new CliError(EXIT.failed, `${path} is no file; a report reads it several times`);
  const records = new FileRecords(await openTelemetryFile(path, otlpReading(configuration['engine-names'])), stop);
  const states = new Map<TraceId, RunState>();
  for await (const { traceId, logged } of records.batches()) {
    if (only?.has(traceId) === false) continue;
    const state = states.get(traceId) ?? new RunState(RUN_TRACKER_DEFAULTS);
    states.set(traceId, state);
    if (states.size > MAX_TRACES)
      throw new CliError(EXIT.failed, `${path} holds more than ${MAX_TRACES} runs; import it first`);
    state.add(logged, 0);
  }
  if (states.size === 0) throw new CliError(EXIT.failed, `${path} holds no records of a run`);
  const reports: CommandReport[] = [];
  const scopes: CommandScope[] = [];
  for (const [traceId, state] of states) {
    const { quietAfterProcessMs, quietAfterInvocationMs } = RUN_TRACKER_DEFAULTS;
    const { invocations } = state.judge(Math.max(quietAfterProcessMs, quietAfterInvocationMs));
    const run = {
      traceId,
      firstSeenUnixMs: 0,
      lastSeenUnixMs: 0,
      state: 'finished',
      logBytes: records.count,
      invocations,
    } as const;
    const redactor = new Redactor(level ?? 'off');
    for (const command of await readMeasures(records, run, (record) => learnNames(record, redactor))) {
      scopes.push(scopeOf(command));
      const report = { traceId, command, commandCount: invocations.length, comparison: null };
      reports.push(level === null ? report : redactedReport(report, redactor));
    }
  }
  reports.sort((a, b) => (a.command.invocation.startTimeUnixNano < b.command.invocation.startTimeUnixNano ? -1 : 1));
  return { reports, isDamaged: records.isDamaged, runId: null, scopes };
}

/** A file as a record log: the offsets of its records are their numbers. */
class FileRecords {
  /** Records that were read. */
  count = 0;
  isDamaged = false;

  constructor(
    private readonly source: RecordSource,
    private readonly stop: AbortSignal,
  ) {}

  /** The records in the order of the file, some of one trace at a time. */
  async *batches(): AsyncGenerator<{ readonly traceId: TraceId; readonly logged: readonly LoggedRecord[] }> {
    let offset = 0;
    for await (const { delivery, rejects } of this.source.read(this.stop)) {
      this.isDamaged ||= rejects.length > 0;
      for (const { traceId, resource, records } of delivery.batches) {
        const logged = records.map((record, index) => ({
          record,
          resource,
          offset: offset + index,
          endOffset: offset + index + 1,
        }));
        offset += records.length;
        this.count = Math.max(this.count, offset);
        yield { traceId, logged };
      }
    }
  }

  async *read(traceId: TraceId): AsyncIterable<readonly LoggedRecord[]> {
    for await (const batch of this.batches()) if (batch.traceId === traceId) yield batch.logged;
  }
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
interface ScopedCommand {
  readonly invocation: InvocationSummary;
  readonly job: string | null;
  readonly project: string | null;
}

/** Finds the runs of commands: from their steps and, for commands without a step, from the state. */
class CommandScopes {
  private readonly unnamed: ReadonlyMap<string, UnnamedRun>;

  constructor(unnamed: readonly UnnamedRun[]) {
    this.unnamed = new Map(unnamed.map((run) => [`${run.traceId} ${run.commandIndex}`, run]));
  }

  /** The id of the command's run; `null` if unknown. */
  runIdOf(traceId: TraceId, { step, index }: InvocationSummary): number | null {
    return step?.runId ?? this.unnamed.get(`${traceId} ${index}`)?.runId ?? null;
  }

  placed(traceId: TraceId, invocation: InvocationSummary): ScopedCommand {
    const place = invocation.step ?? this.unnamed.get(`${traceId} ${invocation.index}`);
    return { invocation, job: place?.job ?? null, project: place?.project ?? null };
  }
}

/**
 * The durations of the 50 latest earlier successful commands of the same project and job with the same first
 * word, in milliseconds, the last to start first. Commands without a job share one job.
 * @param recent the runs that are searched
 */
async function earlierLengthsMs(
  invocation: InvocationSummary,
  ownTraceId: TraceId,
  files: RunFiles,
  { recent, places }: { readonly recent: readonly TraceId[]; readonly places: CommandScopes },
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

function isComparable(other: ScopedCommand, command: ScopedCommand): boolean {
  return (
    other.invocation.verdict === 'success' &&
    other.invocation.command === command.invocation.command &&
    other.invocation.startTimeUnixNano < command.invocation.startTimeUnixNano &&
    other.job === command.job &&
    other.project === command.project
  );
}
