import type { Writable } from 'node:stream';
import { checkBaseUrl } from '../cli/bridge/bridge.js';
import { CliError, EXIT, type Invocation, type ProcessContext } from '../cli/command.js';
import type { Configuration } from '../config/configuration.js';
import { parseDurationMs } from '../config/duration.js';
import { type Environment, nonEmpty } from '../config/environment.js';
import { environmentName } from '../config/settings.js';
import type { Logger } from '../core/logger.js';
import { cleanLine } from '../core/text.js';
import { splitScope } from '../otlp/scope-path.js';
import { sanitizeCommand } from '../redaction/redactor.js';
import { hasStepSummary, type ReportOutput } from '../report/feature.js';
import { type CommandEnding, DEFAULT_JOB, type StepStart } from '../storage/steps.js';
import type { CommandEntry, LeftFile } from './command-entry.js';
import type { EngineFile, TracePosition } from './command-environment.js';
import type { CommandReceiver } from './command-receiver.js';
import type { ExecHost } from './exec-target.js';

/** What is known of a command before it starts. */
export interface CommandFacts {
  readonly context: ProcessContext;
  readonly host: ExecHost;
  readonly options: ExecOptions;
  /** Reports that are written when it has ended. */
  readonly outputs: readonly ReportOutput[];
  readonly configuration: Configuration;
  readonly isFolderChosen: boolean;
  readonly logger: Logger;
  readonly notices: Notices;
  readonly stepId: string;
  readonly startedUnixMs: number;
  readonly command: readonly string[];
  readonly receiver: CommandReceiver;
  /** Folder of this command alone; `undefined` where none could be made. */
  readonly folder: string | undefined;
  /** The JSONL to follow; `undefined` where there is nothing to follow. */
  readonly file: EngineFile | undefined;
  /** The command's own span, where there is to be one. */
  readonly span: TracePosition['span'];
  /** The environment that the command gets. */
  readonly environment: Environment;
}

/** How a wrapped command ended, as its parent process sees it. */
export type ChildEnding =
  /** It exited by itself; `stoppedBy` is the signal by which it was asked to. */
  | { readonly kind: 'exited'; readonly exitCode: number; readonly stoppedBy?: NodeJS.Signals }
  /** A signal killed it. */
  | { readonly kind: 'killed'; readonly signal: NodeJS.Signals }
  /** It could not be started; `exitCode` as shells have it: 127 not found, 126 not executable. */
  | { readonly kind: 'notStarted'; readonly exitCode: 126 | 127; readonly reason: string };

/** What is registered of a command that starts. */
export function stepStartOf({ stepId, startedUnixMs, command, options }: CommandFacts): StepStart {
  const { runKey, job, environment, project, reason, isLast } = options.run;
  return {
    ...{ stepId, runKey, environment, project, reason, isLast, startedUnixMs },
    job: job ?? DEFAULT_JOB,
    command: sanitizeCommand(command.join(' ')).split(' '),
  };
}

/**
 * What is left in a command's folder for the process that takes it in.
 * @param end `null` while the command is at work
 * @param traces those that are known to be the command's, and those that were seen in its file
 */
export function commandEntryOf(
  facts: CommandFacts,
  end: CommandEntry['end'],
  { traceIds, seenTraceIds }: Pick<LeftFile, 'traceIds' | 'seenTraceIds'> = { traceIds: [], seenTraceIds: [] },
): CommandEntry {
  const { options, file: engineFile, environment } = facts;
  const file =
    engineFile === undefined ? null : { path: engineFile.path, from: engineFile.from, traceIds, seenTraceIds };
  const resourceAttributes = environment.OTEL_RESOURCE_ATTRIBUTES ?? '';
  return { start: stepStartOf(facts), to: options.to ?? null, file, resourceAttributes, end };
}

/** What is registered of a command that ended. */
export function toCommandEnding(ending: ChildEnding): CommandEnding {
  switch (ending.kind) {
    case 'exited':
    case 'killed':
      return ending;
    case 'notStarted':
      return { kind: 'notStarted', reason: ending.reason };
  }
}

/** Arguments of `exec` besides the program's settings. */
export interface ExecOptions {
  /** Base URL of the bridge to hand over to; `undefined` for whichever is found. */
  readonly to: string | undefined;
  /** Id of the step, made up by the caller; `undefined` for a random one. Never from the environment, which commands share. */
  readonly stepId: string | undefined;
  /** How long exports may keep the caller waiting when the command has ended, in milliseconds. */
  readonly flushTimeoutMs: number;
  readonly isSpanWanted: boolean;
  readonly isQuiet: boolean;
  readonly isSummaryWanted: boolean;
  /** Whether somebody watches the command end, who is told in a line how it did: not in CI, nor where the summary says it. */
  readonly isLineWanted: boolean;
  /** What names the data folder to commands, where the command line does: ` --data-dir data`. */
  readonly folderArgument: string;
  /** `--report`; `undefined` for none. */
  readonly report: string | undefined;
  /** Whether the summary of a CI system's step is added to, where there is one. */
  readonly isCiSummaryWanted: boolean;
  /** Whether the command's environment names its run as the hosted platform does. */
  readonly isIdentityWanted: boolean;
  /** Who the run belongs to, as the user named it. */
  readonly run: {
    readonly runKey: string | null;
    readonly job: string | null;
    readonly environment: string | null;
    readonly project: string | null;
    readonly reason: string | null;
    readonly isLast: boolean;
  };
}

const DEFAULT_FLUSH_TIMEOUT = '10s';
/** As the registry takes it. Without `..`: the id names the command's private folder, too. */
const STEP_ID = /^(?!\.+$)[\w.:-]{1,100}$/;

/** Reads the options: flag before variable. @throws CliError for a value that is none. */
export function readExecOptions({ context, flags, switches }: Invocation): ExecOptions {
  const { environment } = context;
  const text = (name: string) => nonEmpty(flags[name]) ?? nonEmpty(environment[environmentName(name)]);
  const isOn = (name: string) =>
    switches.has(name) || /^(1|on|true|yes)$/i.test(environment[environmentName(name)]?.trim() ?? '');
  const to = text('to');
  const endpoint = to === undefined ? (nonEmpty(environment.OTEL_EXPORTER_OTLP_ENDPOINT) ?? '') : checkBaseUrl(to);
  // Where the command's records go may say whose they are.
  const { baseUrl, scope } = splitScope(endpoint);
  const flushTimeout = text('flush-timeout') ?? DEFAULT_FLUSH_TIMEOUT;
  const flushTimeoutMs = parseDurationMs(flushTimeout);
  if (flushTimeoutMs === undefined) {
    throw new CliError(
      EXIT.usage,
      `--flush-timeout: ${JSON.stringify(flushTimeout)} is not a time such as 500ms or 10s`,
    );
  }
  const stepId = nonEmpty(flags['step-id']);
  if (stepId !== undefined && !STEP_ID.test(stepId)) {
    throw new CliError(EXIT.usage, `--step-id: ${JSON.stringify(stepId)} is not 1 to 100 letters, digits or _ . : -`);
  }
  const job = text('job') ?? scope.job ?? null;
  return {
    stepId,
    to: to === undefined ? undefined : baseUrl,
    flushTimeoutMs,
    isSpanWanted: isOn('span'),
    isQuiet: isOn('quiet'),
    isSummaryWanted: isOn('summary'),
    isLineWanted:
      context.isStderrTerminal && !isOn('quiet') && !isOn('summary') && nonEmpty(environment.CI) === undefined,
    folderArgument: flags['data-dir'] === undefined ? '' : ` --data-dir ${flags['data-dir']}`,
    report: text('report'),
    isCiSummaryWanted: hasStepSummary(environment) && !isOn('no-ci'),
    isIdentityWanted: job !== null || isOn('platform-env'),
    run: {
      runKey: text('run-id') ?? null,
      job,
      environment: text('environment') ?? scope.environment ?? null,
      project: text('project') ?? scope.project ?? null,
      reason: text('reason') ?? null,
      isLast: isOn('last'),
    },
  };
}

/** What `exec` has to say beside the command's own output: little, a line each, and each line once. */
export class Notices {
  private readonly reported = new Set<string>();

  constructor(
    private readonly stderr: Writable,
    private readonly isQuiet: boolean,
  ) {}

  say(message: string): void {
    const line = cleanLine(message);
    if (this.isQuiet || this.reported.has(line)) return;
    this.reported.add(line);
    this.stderr.write(`run-bridge: ${line}\n`);
  }
}
