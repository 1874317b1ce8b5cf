import { randomUUID } from 'node:crypto';
import { existsSync, statSync } from 'node:fs';
import { appendFile, writeFile } from 'node:fs/promises';
import { isAbsolute, join, relative, resolve, sep } from 'node:path';
import { CliError, EXIT, type ExitCode, type Invocation, type ProcessContext } from '../cli/command.js';
import { readConfiguration } from '../cli/command-configuration.js';
import type { Configuration } from '../config/configuration.js';
import { nonEmpty } from '../config/environment.js';
import { reasonOf } from '../core/errors.js';
import { packageVersion } from '../core/package-file.js';
import { cleanLine } from '../core/text.js';
import { RecordLogFiles } from '../log/record-log-files.js';
import type { TraceId } from '../record/telemetry-record.js';
import { redactionFor } from '../redaction/known-names.js';
import { learnNames, Redactor } from '../redaction/redactor.js';
import { readMeasures } from '../run/measures/read-measures.js';
import type { CommandMeasures } from '../run/measures/run-totals.js';
import { troubleLocation, troublesOf } from '../run/measures/troubles.js';
import { type InvocationSummary, killingSignal } from '../run/verdict.js';
import { type CommandReport, type ReportSetting, redactedReport } from './content.js';
import { formatOf, type ReportOutput } from './formats.js';
import { findReports, type ReportHost, reportsOfFile, type ShownLevel, withManifest } from './found-reports.js';
import { RunFiles, readRun } from './run-files.js';
import { endedLine } from './text.js';

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
  if (flags.against !== undefined && !format.isCompared) {
    throw new CliError(
      EXIT.usage,
      '--against goes with --format text, markdown or github; run-bridge diff writes JSON',
    );
  }
  if (flags.job !== undefined && flags.against === undefined) {
    throw new CliError(EXIT.usage, '--job says whose last good run --against is; give --against last-good as well');
  }
  const configuration = await readConfiguration(invocation);
  const [named] = operands;
  const level = format.isRedacted ? redactionFor('anybodyElse', configuration.redaction) : null;
  const deps = { configuration, host, context };
  let found = await findReports(named, level, deps);
  if (flags.against !== undefined) {
    const { withComparison } = await import('./against.js');
    found = await withComparison(found, { named: flags.against, job: flags.job }, level, deps);
  }
  const setting = settingOf(context);
  const write = await format.writer();
  context.stdout.write(write(found.reports, setting));
  // What GitHub shows of a step is a file of Markdown; the annotations stand in the output.
  if (flags.format === 'github') await appendSummary(found.reports, context);
  return found.isDamaged ? EXIT.unreadable : EXIT.ok;
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
