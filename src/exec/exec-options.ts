import { CliError } from '../cli/cli-error.js';
import type { Invocation } from '../cli/command-line.js';
import { EXIT } from '../cli/exit-code.js';
import { checkBaseUrl } from '../cli/post-otlp.js';
import { parseDurationMs } from '../config/duration.js';
import { nonEmpty } from '../config/environment.js';
import { environmentName } from '../config/settings.js';

/** What `exec` is told besides the program's settings. */
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
  return {
    stepId,
    to: to === undefined ? undefined : checkBaseUrl(to),
    flushTimeoutMs,
    isSpanWanted: isOn('span'),
    isQuiet: isOn('quiet'),
    isSummaryWanted: isOn('summary'),
    run: {
      runKey: text('run-id') ?? null,
      job: text('job') ?? null,
      environment: text('environment') ?? null,
      project: text('project') ?? null,
      reason: text('reason') ?? null,
      isLast: isOn('last'),
    },
  };
}
