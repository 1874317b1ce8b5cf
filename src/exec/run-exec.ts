import { randomUUID } from 'node:crypto';
import { join } from 'node:path';
import type { CommandExit, Invocation } from '../cli/command.js';
import { resolveWithDestinations } from '../cli/command-configuration.js';
import type { Configuration } from '../config/configuration.js';
import { ConfigurationError } from '../config/configuration-error.js';
import type { Environment } from '../config/environment.js';
import { type Clock, pause, type Timer } from '../core/clock.js';
import { reasonOf } from '../core/errors.js';
import { CANCEL_TIMES, Interruption } from '../core/interruption.js';
import { silentLogger } from '../core/logger.js';
import { processTree, signalProcesses } from '../core/process-tree.js';
import { cleanLine } from '../core/text.js';
import { hasRunIdentity, withRunIdentity } from '../platform/feature.js';
import { reportOutputs } from '../report/feature.js';
import { STOP_SIGNALS } from '../run/verdict.js';
import type { DataFolderLock } from '../storage/data-folder-lock.js';
import {
  callersTrace,
  childEnvironment,
  findUserFile,
  isWrapped,
  mayRunSeveral,
  readEngineSwitches,
  readUserFile,
  tracePosition,
} from './command-environment.js';
import {
  type ChildEnding,
  type CommandFacts,
  commandEntryOf,
  Notices,
  readExecOptions,
  stepStartOf,
} from './command-facts.js';
import { ENGINE_FILE, makePrivateFolder, SPOOL_FOLDER, writeCommandEntry } from './command-folder.js';
import { CommandOutput } from './command-output.js';
import {
  type ChildProcess,
  deferToCommand,
  endedChildrenCpuSeconds,
  exitOf,
  FORWARDED_SIGNALS,
  isForwarded,
  isInTerminalForeground,
  ProcessUsage,
  startChild,
} from './command-process.js';
import { CommandReceiver } from './command-receiver.js';
import type { CommandSpan } from './command-span.js';
import type { ExecHost } from './exec-target.js';
import type { LiveRecords } from './live-records.js';

/**
 * What `run-bridge exec` does: runs the command as if nothing stood between it and the caller, with the bridge at its side.
 * Whatever goes wrong with the bridge is a line on standard error.
 * @throws CliError for options that are none.
 */
export async function runExec(invocation: Invocation, host: ExecHost): Promise<CommandExit> {
  const { context, operands: command } = invocation;
  const options = readExecOptions(invocation);
  const outputs = options.report === undefined ? [] : await reportOutputs(options.report);
  const notices = new Notices(context.stderr, options.isQuiet);
  const stop = new AbortController();
  let child: ChildProcess | undefined;
  let hasEnded = false;
  const early: NodeJS.Signals[] = [];
  let stoppedBy: NodeJS.Signals | undefined;
  const endAs = context.takeOver({
    signals: FORWARDED_SIGNALS,
    onSignal(signal) {
      if (hasEnded) stop.abort();
      else if (STOP_SIGNALS.has(signal)) stoppedBy ??= signal;
      if (hasEnded) return;
      if (child === undefined) early.push(signal);
      else if (isForwarded(signal, () => isInTerminalForeground(context.isStderrTerminal))) child.signal(signal);
    },
    onFault: (error) => notices.say(`internal error, which the command does not notice: ${String(error)}`),
  });
  const bridge = await bridgeFor(invocation, host, { options, outputs }, notices);
  const output = new CommandOutput();
  child = startChild(command, bridge?.environment ?? context.environment);
  for (const signal of early) child.signal(signal);
  bridge?.begin(child.pid, output);
  const ending = withSignal(await child.ended, stoppedBy);
  output.end();
  hasEnded = true;
  const exit = exitOf(ending);
  endAs(exit);
  if (ending.kind === 'notStarted') context.stderr.write(`run-bridge: ${cleanLine(ending.reason)}\n`);
  const patience = new Patience(context.clock, stop.signal);
  const end = bridge
    ?.end(ending, stop.signal, (timeMs) => patience.allow(timeMs))
    .catch((error: unknown) => {
      notices.say(`${wordsOf(error)}; ${INCOMPLETE}`);
    });
  if (!(await patience.wait(end))) notices.say(`the bridge did not end in time; ${INCOMPLETE}`);
  return exit;
}

/** @param signal by which people or systems asked the command to stop */
function withSignal(ending: ChildEnding, signal: NodeJS.Signals | undefined): ChildEnding {
  return ending.kind === 'exited' && signal !== undefined ? { ...ending, stoppedBy: signal } : ending;
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

/** What was asked for. */
type Wanted = Pick<CommandFacts, 'options' | 'outputs'>;

/** `undefined` where there is none: it cannot be had, or an `exec` around this one has taken that part. */
async function bridgeFor(invocation: Invocation, host: ExecHost, wanted: Wanted, notices: Notices) {
  if (await isWrapped(invocation.context.environment)) {
    const asked = [...Object.keys(invocation.flags), ...invocation.switches].filter((name) => !HARMLESS.has(name));
    if (asked.length > 0) {
      const names = asked.map((name) => `--${name}`).join(', ');
      notices.say(`${names} not heeded: another run-bridge exec runs this one and keeps its telemetry; say it there`);
    }
    return undefined;
  }
  return CommandBridge.prepare(invocation, host, wanted, notices).catch((error: unknown) => {
    notices.say(`${wordsOf(error)}; the command runs, its telemetry is not kept`);
    return undefined;
  });
}

/** Options that say nothing of where telemetry goes and whose it is. */
const HARMLESS: ReadonlySet<string> = new Set(['quiet', 'summary', 'flush-timeout', 'no-ci']);

function wordsOf(error: unknown): string {
  if (error instanceof ConfigurationError) return error.problems.join('; ');
  return reasonOf(error);
}

/** The command has priority after this time at the latest, in milliseconds. */
const MAX_SHARE_MS = 30_000;

/** The bridge of one wrapped command, from the port that is open before it starts to the last record. */
export class CommandBridge {
  /** Prepares what must be there before the command starts, and no more: its start waits for this. @throws whatever is in the way. */
  static async prepare(
    invocation: Invocation,
    host: ExecHost,
    { options, outputs }: Wanted,
    notices: Notices,
  ): Promise<CommandBridge> {
    const { context, operands: command } = invocation;
    const { configuration: asked, rows, warnings } = await resolveWithDestinations(invocation);
    for (const warning of warnings) notices.say(warning);
    const isSet = (name: string) => rows.some((row) => row.name === name && row.origin !== 'default');
    const logger = isSet('log-level') ? (await import('../cli/logger.js')).loggerOf(asked, context) : silentLogger;
    // Standard output is the command's.
    const configuration: Configuration = asked.jsonl === '-' ? { ...asked, jsonl: 'off' } : asked;
    const stepId = options.stepId ?? randomUUID();
    const receiver = await CommandReceiver.open(context.clock, logger);
    const folder = makePrivateFolder([
      join(configuration['data-dir'], SPOOL_FOLDER, stepId),
      join(context.tempDir, `run-bridge-${stepId}`),
    ]);
    const switches = readEngineSwitches(command, context.environment);
    const userFile = await readUserFile(findUserFile(switches, context.workingDir));
    const ownFile =
      folder === undefined ? undefined : { path: join(folder, ENGINE_FILE), from: undefined, isShared: false };
    const { parent, span } = tracePosition(
      callersTrace(context.environment, (message) => notices.say(message)),
      options.isSpanWanted,
    );
    const environment = childEnvironment(context.environment, {
      otlpUrl: receiver.url,
      jsonlPath: userFile === undefined ? (ownFile?.path ?? null) : null,
      stepId,
      parent: switches.hasOwnTrace ? null : parent,
      isParentOwn: span !== null,
    });
    const bridge = new CommandBridge({
      ...{
        context,
        host,
        options,
        outputs,
        configuration,
        isFolderChosen: isSet('data-dir'),
        logger,
        notices,
        stepId,
        command,
      },
      ...{ startedUnixMs: context.clock.nowUnixMs(), receiver, folder, file: userFile ?? ownFile, span, environment },
    });
    if (options.isIdentityWanted && !hasRunIdentity(environment)) await bridge.nameRun();
    return bridge;
  }

  private lock: Promise<DataFolderLock | undefined> | undefined;
  private priority: Promise<() => void> | undefined;
  private live: Promise<LiveRecords> | undefined;
  private usage: ProcessUsage | undefined;
  private pid: number | undefined;
  private interruption: Interruption | undefined;
  private readonly ended = new AbortController();

  private constructor(private facts: CommandFacts) {}

  get environment(): Environment {
    return this.facts.environment;
  }

  /** The command was started: loads the rest, takes in what comes, and interrupts it when its run is cancelled. */
  begin(pid: number | undefined, output: CommandOutput): void {
    if (this.facts.span !== null && pid !== undefined) this.usage = new ProcessUsage(pid, this.facts.context.clock);
    this.pid = pid;
    this.live = this.load(output);
    // Awaited at the end; until then its failure is nobody's.
    this.live.catch(() => undefined);
    const { live } = this;
    this.priority = this.deferOnceStored(live);
    const { command, receiver } = this.facts;
    // What one engine command left is copied before the next one can write its own in its place.
    if (mayRunSeveral(command)) {
      receiver.unread.endAfter((bytes) =>
        live.then(
          (records) => records.copyArtifacts(bytes),
          () => undefined,
        ),
      );
    }
  }

  /** Registers the command before it starts, so that its environment can name the run. Without that it starts all the same. */
  private async nameRun(): Promise<void> {
    const { notices } = this.facts;
    this.lock = this.lockFolder();
    await this.lock;
    try {
      const { bridgeChoiceOf, registerBeforeStart } = await import('./command-target.js');
      const place = await registerBeforeStart(bridgeChoiceOf(this.facts), stepStartOf(this.facts));
      this.facts = { ...this.facts, environment: withRunIdentity(this.facts.environment, place) };
    } catch (error) {
      notices.say(`${wordsOf(error)}; the command starts without DBT_CLOUD_RUN_ID in its environment`);
    }
  }

  private async load(output: CommandOutput): Promise<LiveRecords> {
    const lock = await (this.lock ?? this.lockFolder());
    const { LiveRecords } = await import('./live-records.js');
    return new LiveRecords(this.facts, { lock, output }, () => this.cancel());
  }

  /** Before all that takes a while to load: should this process be killed, its folder says whose command it is. */
  private async lockFolder(): Promise<DataFolderLock | undefined> {
    const { folder, startedUnixMs, context } = this.facts;
    if (folder === undefined) return undefined;
    try {
      writeCommandEntry(folder, commandEntryOf(this.facts, null));
      // The lock says that the rest is there: it comes last. The kernel takes it back when this process dies in whatever way.
      const { DataFolderLock: Lock } = await import('../storage/data-folder-lock.js');
      return Lock.acquire(folder, { pid: context.pid, since: new Date(startedUnixMs).toISOString(), address: null });
    } catch {
      // Its telemetry is taken in, as long as this process lives.
      return undefined;
    }
  }

  /**
   * The command has ended. Resolves when everything is where it belongs, or time is up; says what could not be done.
   * @param onStage called as each stage of it begins, with the most that it is meant to take, in milliseconds
   */
  async end(ending: ChildEnding, stop: AbortSignal, onStage: (timeMs: number) => void): Promise<void> {
    onStage(this.facts.options.flushTimeoutMs);
    // Before what this program itself has started ends, too.
    const span = this.spanOf(ending);
    this.ended.abort();
    (await this.priority)?.();
    this.usage?.stop();
    this.interruption?.stop();
    const seen = this.interruption === undefined ? ending : withSignal(ending, 'SIGINT');
    await (await this.live)?.end(seen, stop, { span, onStage });
  }

  /**
   * The command has priority once its first records are stored: the code that stores them is loaded while the engine starts,
   * which leaves processors idle that it keeps busy afterwards.
   */
  private async deferOnceStored(live: Promise<LiveRecords>): Promise<() => void> {
    const { signal } = this.ended;
    const stored = live.then((records) => records.firstStored).catch(() => undefined);
    await Promise.race([stored, pause(this.facts.context.clock, MAX_SHARE_MS, signal)]);
    return signal.aborted ? () => {} : deferToCommand();
  }

  /** Everything that the command has started is signalled, as by a terminal's Ctrl+C: a shell does not pass a signal on. */
  private cancel(): void {
    const { notices, context } = this.facts;
    const { pid } = this;
    if (this.ended.signal.aborted || this.interruption !== undefined || pid === undefined) return;
    notices.say('the run is canceled: the command is interrupted');
    const send = (signal: NodeJS.Signals) => signalProcesses(processTree(pid), signal);
    this.interruption = new Interruption(send, CANCEL_TIMES, context.clock);
  }

  private spanOf(ending: ChildEnding): CommandSpan | undefined {
    const { span, context, stepId, startedUnixMs } = this.facts;
    if (span === null) return undefined;
    return {
      ...span,
      ...{ stepId, startedUnixMs, ending, pid: this.pid, endedUnixMs: context.clock.nowUnixMs() },
      traceState: context.environment.TRACESTATE ?? '',
      command: stepStartOf(this.facts).command,
      cpuSeconds: endedChildrenCpuSeconds(),
      peakMemoryBytes: this.usage?.peakMemoryBytes,
    };
  }
}
