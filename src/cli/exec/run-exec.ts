import type { Clock, Timer } from '../../component/clock.js';
import { reasonOf } from '../../component/reason-of.js';
import { ConfigurationError } from '../../config/configuration-error.js';
import type { Invocation } from '../command-line.js';
import type { CommandExit } from '../exit-code.js';
import type { ChildEnding } from './child-ending.js';
import { type ChildProcess, startChild } from './child-process.js';
import { CommandBridge } from './command-bridge.js';
import { type ExecOptions, readExecOptions } from './exec-options.js';
import { isWrapped } from './is-wrapped.js';
import { Notices } from './notices.js';
import { FORWARDED_SIGNALS, isForwarded } from './signal-forwarding.js';
import { signalStatus } from './signal-status.js';
import { isInTerminalForeground } from './terminal-foreground.js';

/**
 * What `run-bridge exec` does: runs the command as if nothing stood between it and the caller, with the bridge at its side.
 * Whatever goes wrong with the bridge is a line on standard error.
 * @throws CliError for options that are none.
 */
export async function runExec(invocation: Invocation): Promise<CommandExit> {
  const { context, operands: command } = invocation;
  const options = readExecOptions(invocation);
  const notices = new Notices(context.stderr, options.isQuiet);
  const stop = new AbortController();
  let child: ChildProcess | undefined;
  let hasEnded = false;
  const early: NodeJS.Signals[] = [];
  const endAs = context.takeOver({
    signals: FORWARDED_SIGNALS,
    onSignal(signal) {
      if (hasEnded) stop.abort();
      else if (child === undefined) early.push(signal);
      else if (isForwarded(signal, () => isInTerminalForeground(context.isStderrTerminal))) child.signal(signal);
    },
    onFault: (error) =>
      notices.say(`a fault in run-bridge itself, which the command does not notice: ${String(error)}`),
  });
  const bridge = await bridgeFor(invocation, options, notices);
  child = startChild(command, bridge?.environment ?? context.environment);
  for (const signal of early) child.signal(signal);
  bridge?.begin(child.pid);
  const ending = await child.ended;
  hasEnded = true;
  const exit = exitOf(ending);
  endAs(exit);
  if (ending.kind === 'notStarted') context.stderr.write(`run-bridge: ${ending.reason}\n`);
  const patience = new Patience(context.clock, stop.signal);
  const end = bridge
    ?.end(ending, stop.signal, (timeMs) => patience.allow(timeMs))
    .catch((error: unknown) => {
      notices.say(`${wordsOf(error)}; ${INCOMPLETE}`);
    });
  if (!(await patience.wait(end))) notices.say(`the bridge did not end in time; ${INCOMPLETE}`);
  return exit;
}

const INCOMPLETE = 'the telemetry of the command may be incomplete';

/** What a stage may take beyond the time that it is meant to have, in milliseconds: each has limits of its own, which this one backs. */
const SLACK_MS = 10_000;
/** How long everything may go on when a signal has asked for an end, in milliseconds. */
const STOPPED_MS = 3_000;

/** Waits for the bridge's end, stage by stage, and no longer than a stage may take: a fault in one must not keep the caller. */
class Patience {
  private timer: Timer | undefined;
  private runOut: () => void = () => {};
  private readonly isOver = new Promise<false>((resolve) => {
    this.runOut = () => resolve(false);
  });

  constructor(
    private readonly clock: Clock,
    private readonly stop: AbortSignal,
  ) {
    stop.addEventListener('abort', () => this.allow(0), { once: true });
  }

  /** A stage begins. @param timeMs what it is meant to take at most, in milliseconds; `Infinity` for one that ends by itself */
  allow(timeMs: number): void {
    const limitMs = this.stop.aborted ? STOPPED_MS : timeMs + SLACK_MS;
    this.timer?.cancel();
    this.timer = Number.isFinite(limitMs) ? this.clock.after(limitMs, this.runOut) : undefined;
  }

  /** @returns false where it was given up. */
  async wait(end: Promise<void> | undefined): Promise<boolean> {
    const hasEnded = await Promise.race([(end ?? Promise.resolve()).then(() => true), this.isOver]);
    this.timer?.cancel();
    return hasEnded;
  }
}

/** `undefined` where there is none: it cannot be had, or an `exec` around this one has taken that part. */
async function bridgeFor(invocation: Invocation, options: ExecOptions, notices: Notices) {
  if (await isWrapped(invocation.context.environment)) {
    const asked = [...Object.keys(invocation.flags), ...invocation.switches].filter((name) => !HARMLESS.has(name));
    if (asked.length > 0) {
      const names = asked.map((name) => `--${name}`).join(', ');
      notices.say(`${names} not heeded: another run-bridge exec runs this one and keeps its telemetry; say it there`);
    }
    return undefined;
  }
  return CommandBridge.prepare(invocation, options, notices).catch((error: unknown) => {
    notices.say(`${wordsOf(error)}; the command runs, its telemetry is not kept`);
    return undefined;
  });
}

/** Options that say nothing of where telemetry goes and whose it is. */
const HARMLESS: ReadonlySet<string> = new Set(['quiet', 'summary', 'flush-timeout']);

function exitOf(ending: ChildEnding): CommandExit {
  if (ending.kind !== 'killed') return { exitCode: ending.exitCode, signal: null };
  return { exitCode: signalStatus(ending.signal), signal: DEADLY.has(ending.signal) ? ending.signal : null };
}

/**
 * Signals by which this process ends, too, so that the caller sees just what it would have seen: a shell that ran the
 * command knows by SIGINT that it is to stop its script. Those that dump core end in 128 and their number: a dump of this
 * process would help nobody.
 */
const DEADLY: ReadonlySet<NodeJS.Signals> = new Set(['SIGHUP', 'SIGINT', 'SIGTERM', 'SIGKILL', 'SIGPIPE', 'SIGALRM']);

function wordsOf(error: unknown): string {
  if (error instanceof ConfigurationError) return error.problems.join('; ');
  return reasonOf(error);
}
