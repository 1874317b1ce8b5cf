import { randomUUID } from 'node:crypto';
import { existsSync, statSync } from 'node:fs';
import { appendFile, writeFile } from 'node:fs/promises';
import { isAbsolute, join, relative, resolve, sep } from 'node:path';
import { failingSince, type SinceTexts, sinceTexts } from '../api/failing-since.js';
import { RunMeasures } from '../api/run-measures.js';
import { CliError, EXIT, type ExitCode, type Invocation, type ProcessContext } from '../cli/command.js';
import { readConfiguration, refuseShared } from '../cli/command-configuration.js';
import { otlpReading } from '../cli/otlp-reading.js';
import type { Configuration } from '../config/configuration.js';
import { nonEmpty } from '../config/environment.js';
import { reasonOf } from '../core/errors.js';
import { silentLogger } from '../core/logger.js';
import { packageVersion } from '../core/package-file.js';
import { cleanLine } from '../core/text.js';
import type { CommandHost } from '../feature.js';
import { openTelemetryFile, type RecordSource } from '../files/feature.js';
import type { LoggedRecord, RecordLogReader } from '../log/record-log.js';
import { RecordLogFiles } from '../log/record-log-files.js';
import type { TraceId } from '../record/telemetry-record.js';
import { type RedactionLevel, redactionFor } from '../redaction/known-names.js';
import { learnNames, Redactor } from '../redaction/redactor.js';
import { commandDigest } from '../run/measures/command-digest.js';
import { isBad } from '../run/measures/execution.js';
import { readMeasures } from '../run/measures/read-measures.js';
import { type CommandMeasures, compareWithEarlier } from '../run/measures/run-totals.js';
import { troubleLocation, troublesOf } from '../run/measures/troubles.js';
import { withDependencies } from '../run/measures/upstream.js';
import { RunState } from '../run/open-run.js';
import { RUN_TRACKER_DEFAULTS } from '../run/run-tracker-config.js';
import { type InvocationSummary, killingSignal } from '../run/verdict.js';
import { FIRST_ACCOUNT_ID } from '../storage/account-store.js';
import type { State } from '../storage/state.js';
import type { UnnamedRun } from '../storage/trace-catalog.js';
import { type CommandReport, type ReportSetting, redactedReport } from './content.js';
import { formatOf, type ReportOutput } from './formats.js';
import { findRuns, RunFiles, readRun } from './run-files.js';
import { endedLine } from './text.js';

/** What the command needs of the program. */
export type ReportHost = Pick<CommandHost, 'finishLeftovers' | 'askState'>;

/**
 * Runs `run-bridge report`. It reads files, and ids of runs from the state, so a bridge may be running on the data
 * folder; records that a killed `exec` left there are imported first.
 * @throws CliError, ConfigurationError
 */
export async function reportRun(invocation: Invocation, host: ReportHost): Promise<ExitCode> {
  const { context, operands, switches, flags } = invocation;
  if (switches.has('schema')) {
    const { reportSchema } = await import('./schema.js');
    context.stdout.write(`${JSON.stringify(reportSchema(), null, 2)}\n`);
    return EXIT.ok;
  }
  const format = formatOf(flags.format ?? (switches.has('json') ? 'json' : 'text'), '--format');
  const configuration = await readConfiguration(invocation);
  const [named] = operands;
  const level = format.isRedacted ? redactionFor('anybodyElse', configuration.redaction) : null;
  const found = await findReports(named, level, { configuration, host, context });
  const setting = settingOf(context);
  const write = await format.writer();
  context.stdout.write(write(found.reports, setting));
  // What GitHub shows of a step is a file of Markdown; the annotations stand in the output.
  if (flags.format === 'github') await appendSummary(found.reports, context);
  return found.isDamaged ? EXIT.unreadable : EXIT.ok;
}

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
}

/** How reports are written to the standard output of this process. */
export function settingOf(context: ProcessContext): ReportSetting {
  const { environment, stdoutColumns: columns, workingDir, packageDir } = context;
  return {
    columns,
    hasColor: hasColor(environment, columns !== null),
    projectPath: pathInRepository(nonEmpty(environment.GITHUB_WORKSPACE), workingDir),
    version: packageVersion(packageDir),
  };
}

/** Colours stand on terminals; `FORCE_COLOR` has them elsewhere as well, `NO_COLOR` and a dumb terminal nowhere. */
function hasColor(environment: ProcessContext['environment'], isTerminal: boolean): boolean {
  if (nonEmpty(environment.NO_COLOR) !== undefined) return false;
  const forced = nonEmpty(environment.FORCE_COLOR);
  if (forced !== undefined) return forced !== '0' && forced.toLowerCase() !== 'false';
  return isTerminal && environment.TERM !== 'dumb';
}

/** `dbt/` where the command runs in that folder of the repository; empty in its root, and outside of it. */
function pathInRepository(root: string | undefined, workingDir: string): string {
  const path = root === undefined ? '' : relative(root, workingDir);
  return path === '' || path.startsWith('..') || isAbsolute(path) ? '' : `${path.split(sep).join('/')}/`;
}

/** The folder for files of the step under Azure Pipelines. */
function azureFolder(environment: ProcessContext['environment']): string | undefined {
  return nonEmpty(environment.TF_BUILD) === undefined ? undefined : nonEmpty(environment.AGENT_TEMPDIRECTORY);
}

/** Adds reports to the summary of the step that GitHub, or Azure Pipelines, shows, where there is one. */
export async function appendSummary(
  reports: readonly CommandReport[],
  { environment, stderr }: Pick<ProcessContext, 'environment' | 'stderr'>,
): Promise<void> {
  const folder = azureFolder(environment);
  if (folder !== undefined) {
    const { markdownReport } = await import('./github.js');
    const file = join(folder, `run-bridge-${randomUUID()}.md`);
    await writeFile(file, `${markdownReport(reports)}\n`);
    // The agent reads it in the output, and shows the file when the step is over.
    stderr.write(`##vso[task.uploadsummary]${file}\n`);
  }
  const path = nonEmpty(environment.GITHUB_STEP_SUMMARY);
  if (path === undefined) return;
  const { markdownReport } = await import('./github.js');
  const text = `${markdownReport(reports)}\n`;
  const usedBytes = statSync(path, { throwIfNoEntry: false })?.size ?? 0;
  // A summary that is larger is not shown at all.
  if (usedBytes + Buffer.byteLength(text) <= MAX_SUMMARY_BYTES) await appendFile(path, text);
}

/** The summary of a step has 1 MiB at most. */
const MAX_SUMMARY_BYTES = 1024 * 1024;

/** Where a command's reports are made from, and what is wanted of them. */
export interface EndedCommandReports {
  readonly traceIds: readonly TraceId[];
  readonly configuration: Configuration;
  readonly context: ProcessContext;
  /** The engine's own file, for runs that are not in the data folder. */
  readonly file: string | undefined;
  readonly outputs: readonly ReportOutput[];
  /** Whether the summary of the CI system's step is added to. */
  readonly isSummaryWanted: boolean;
}

/**
 * Writes reports of a command's runs when it has ended.
 * @returns how each engine command ended, and why, in a line each; and the number of its run where that is known
 */
export async function writeCommandReports(of: EndedCommandReports): Promise<readonly EndedEngineCommand[]> {
  const { outputs, context, configuration, isSummaryWanted } = of;
  const shown = redactionFor('anybodyElse', configuration.redaction);
  const isRedactedNeeded = isSummaryWanted || outputs.some(({ format }) => format.isRedacted);
  const whole = await reportsOfCommand(of, null);
  const redacted = isRedactedNeeded ? await reportsOfCommand(of, shown) : [];
  const own = settingOf(context);
  const setting = context.isStderrTerminal ? own : { ...own, columns: null, hasColor: false };
  const troubles: string[] = [];
  for (const { format, path } of outputs) {
    const write = await format.writer();
    const reports = format.isRedacted ? redacted : whole;
    if (path === null) context.stderr.write(write(reports, setting));
    else {
      const file = { ...setting, columns: null, hasColor: false };
      const target = resolve(context.workingDir, path);
      // One that cannot be written does not keep the others from being written.
      await writeFile(target, write(reports, file)).catch((error: unknown) => void troubles.push(reasonOf(error)));
    }
  }
  if (isSummaryWanted) {
    await appendSummary(redacted, context).catch((error: unknown) => void troubles.push(reasonOf(error)));
  }
  if (troubles.length > 0) throw new Error(troubles.join('; '));
  return whole.map(({ command }) => endedCommand(command.invocation, causeOf(command)));
}

function endedCommand(invocation: InvocationSummary, cause: readonly string[]): EndedEngineCommand {
  return {
    line: cleanLine([endedLine(invocation), ...cause].join(': ')),
    isSuccess: invocation.verdict === 'success',
    runId: invocation.step?.runId ?? null,
  };
}

/**
 * How each engine command of a command ended, and why. Where all did well no record log is read for it.
 * @throws what keeps the logs from being read
 */
export async function endedCommands(
  of: Omit<EndedCommandReports, 'outputs' | 'isSummaryWanted'>,
): Promise<readonly EndedEngineCommand[]> {
  const files = new RunFiles(of.configuration['data-dir']);
  const runs = await Promise.all(of.traceIds.map((traceId) => files.summary(traceId)));
  const invocations = runs.flatMap((run) => run?.invocations ?? []);
  const isGood = runs.every((run) => run !== undefined) && invocations.every(({ verdict }) => verdict === 'success');
  if (isGood) return invocations.map((invocation) => endedCommand(invocation, []));
  return await writeCommandReports({ ...of, outputs: [], isSummaryWanted: false });
}

/**
 * The worst that went wrong, where it is, and how much of its kind there is besides; empty where nothing did. Of a command that
 * was stopped or killed no node is the cause, and no warning ever is that of a failure.
 */
function causeOf(command: CommandMeasures): readonly string[] {
  const { verdict, statusMessage, step, hasInvocationEnd } = command.invocation;
  const said = statusMessage === null ? [] : [statusMessage];
  const ending = step?.ending ?? null;
  const isKilled = ending !== null && killingSignal(ending) !== null && !hasInvocationEnd;
  const isCut = verdict === 'canceled' || verdict === 'lost' || isKilled;
  if (isCut) return said;
  const isGood = verdict === 'success' || verdict === null;
  const sections = troublesOf(command).filter(({ severity }) => isGood || severity === 'error');
  if (sections.length === 0 && !isGood) return said;
  const alike = sections.filter(({ severity }) => severity === sections[0]?.severity);
  const [first, ...others] = alike.flatMap(({ troubles }) => troubles);
  if (first === undefined) return [];
  const place = troubleLocation(first);
  const parts = [first.label, first.reason[0]].filter((part) => part !== null && part !== undefined).join(': ');
  const more = others.length === 0 ? '' : `; and ${others.length} more`;
  return [`${parts}${place === null ? '' : ` (${place})`}${more}`];
}

/** How an engine command ended, for people. */
export interface EndedEngineCommand {
  /** `build: error after 1.8 s: model orders: Binder Error: … (models/orders.sql); and 2 more` */
  readonly line: string;
  readonly isSuccess: boolean;
  readonly runId: number | null;
}

async function reportsOfCommand(
  { traceIds, configuration, context, file }: EndedCommandReports,
  level: ShownLevel,
): Promise<readonly CommandReport[]> {
  const files = new RunFiles(configuration['data-dir']);
  const reader = new RecordLogFiles(configuration['data-dir'], () => undefined);
  const reports: CommandReport[] = [];
  const elsewhere = new Set<TraceId>();
  for (const traceId of traceIds) {
    if ((await reader.lengthBytes(traceId)) === 0) {
      elsewhere.add(traceId);
      continue;
    }
    const run = await readRun(traceId, files, reader);
    const redactor = new Redactor(level ?? 'off');
    for (const measured of await readMeasures(reader, run, (record) => learnNames(record, redactor))) {
      const command = await withManifest(measured, measured.invocation.step?.runId ?? null, files);
      const report = { traceId, command, commandCount: run.invocations.length, comparison: null };
      reports.push(level === null ? report : redactedReport(report, redactor));
    }
  }
  if (elsewhere.size > 0 && file !== undefined && existsSync(file)) {
    reports.push(...(await reportsOfFile(file, level, { context, configuration }, elsewhere)).reports);
  }
  if (reports.length === 0) throw new Error('its records are in the data folder of another bridge, which shows it');
  return reports;
}

/** A command with the critical path that its nodes' dependencies give, where the data folder has them. */
async function withManifest(command: CommandMeasures, runId: number | null, files: RunFiles): Promise<CommandMeasures> {
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
      const command = await withManifest(measured, places.runIdOf(traceId, measured.invocation), files);
      const earlier = await earlierLengthsMs(command.invocation, traceId, files, { recent, places });
      const comparison = compareWithEarlier(lengthMs(command), earlier);
      const runId = places.runIdOf(traceId, command.invocation);
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
  return { reports, isDamaged: damagedCount > 0 };
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
  const { catalog, measures: store } = of.state;
  const run = verdict === 'error' ? await catalog.findRun(FIRST_ACCOUNT_ID, runId) : undefined;
  if (run === undefined) return undefined;
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
  const ids = command.nodes.filter((node) => node.isExecuted && isBad(node.verdict)).map(({ uniqueId }) => uniqueId);
  const deps = {
    catalog,
    measures: { digestsOf, ofSteps: (steps: Parameters<RunMeasures['ofSteps']>[0]) => measures.ofSteps(steps) },
  };
  return sinceTexts(await failingSince({ run, commands: [command] }, ids.slice(0, MAX_SINCE), deps, true));
}

/** How much of a run's texts is shown; `null` for all of it, however long it is. */
type ShownLevel = RedactionLevel | null;

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
async function reportsOfFile(
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
      const report = { traceId, command, commandCount: invocations.length, comparison: null };
      reports.push(level === null ? report : redactedReport(report, redactor));
    }
  }
  reports.sort((a, b) => (a.command.invocation.startTimeUnixNano < b.command.invocation.startTimeUnixNano ? -1 : 1));
  return { reports, isDamaged: records.isDamaged };
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
export class CommandScopes {
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
export async function earlierLengthsMs(
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
