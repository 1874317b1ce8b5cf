import { randomUUID } from 'node:crypto';
import { join } from 'node:path';
import { CANCEL_TIMES, Interruption } from '../../component/interruption.js';
import { silentLogger } from '../../component/logger.js';
import { pause } from '../../component/pause.js';
import { processTree } from '../../component/process-tree.js';
import { signalProcesses } from '../../component/signal-processes.js';
import type { Configuration } from '../../config/configuration.js';
import { type Environment, nonEmpty } from '../../config/environment.js';
import { ENGINE_FILE, SPOOL_FOLDER } from '../../source/spool-folder.js';
import { writeSpoolEntry } from '../../source/write-spool-entry.js';
import type { DataFolderLock } from '../../store/data-folder-lock.js';
import type { Invocation } from '../command-line.js';
import { loggerOf } from '../logger-of.js';
import { resolveForCommand } from '../resolve-for-command.js';
import type { ChildEnding } from './child-ending.js';
import { childEnvironment } from './child-environment.js';
import type { CommandFacts } from './command-facts.js';
import type { CommandSpan } from './command-span.js';
import { mayRunSeveral, readEngineSwitches } from './engine-switches.js';
import type { ExecOptions } from './exec-options.js';
import { giveWay, type TakeBack } from './give-way.js';
import type { LiveRecords } from './live-records.js';
import type { Notices } from './notices.js';
import { OtlpInlet } from './otlp-inlet.js';
import { placeInTrace } from './place-in-trace.js';
import { makePrivateFolder } from './private-folder.js';
import { endedChildrenCpuSeconds, ProcessUsage } from './process-usage.js';
import { spoolEntryOf, stepStartOf } from './step-facts.js';
import { parseTraceparent, type TraceContext } from './trace-context.js';
import { findUserFile } from './user-file.js';

/** How long the command shares the processors with this process at most before it goes first, in milliseconds. */
const MAX_SHARE_MS = 30_000;

/** The bridge of one wrapped command, from the port that is open before it starts to the last record. */
export class CommandBridge {
  /** Prepares what must be there before the command starts, and no more: its start waits for this. @throws whatever is in the way. */
  static async prepare(invocation: Invocation, options: ExecOptions, notices: Notices): Promise<CommandBridge> {
    const { context, operands: command } = invocation;
    const { configuration: asked, rows, warnings } = await resolveForCommand(invocation);
    for (const warning of warnings) notices.say(warning);
    const isSet = (name: string) => rows.some((row) => row.name === name && row.origin !== 'default');
    const logger = isSet('log-level') ? loggerOf(asked, context) : silentLogger;
    // Standard output is the command's.
    const configuration: Configuration = asked.jsonl === '-' ? { ...asked, jsonl: 'off' } : asked;
    const stepId = options.stepId ?? randomUUID();
    const inlet = await OtlpInlet.open(context.clock, logger);
    const folder = makePrivateFolder([
      join(configuration['data-dir'], SPOOL_FOLDER, stepId),
      join(context.tempDir, `run-bridge-${stepId}`),
    ]);
    const switches = readEngineSwitches(command, context.environment);
    const userFile = findUserFile(switches, context.workingDir);
    const ownFile = folder === undefined ? undefined : { path: join(folder, ENGINE_FILE), fromOffset: 0 };
    const { parent, span } = placeInTrace(callersTrace(context.environment, notices), options.isSpanWanted);
    const environment = childEnvironment(context.environment, {
      otlpUrl: inlet.url,
      jsonlPath: userFile === undefined ? (ownFile?.path ?? null) : null,
      stepId,
      parent: switches.hasOwnTrace ? null : parent,
      isParentOwn: span !== null,
    });
    return new CommandBridge({
      ...{ context, options, configuration, isFolderChosen: isSet('data-dir'), logger, notices, stepId, command },
      ...{ startedUnixMs: context.clock.nowUnixMs(), inlet, folder, file: userFile ?? ownFile, span, environment },
    });
  }

  private takeBack: Promise<TakeBack | undefined> | undefined;
  private live: Promise<LiveRecords> | undefined;
  private usage: ProcessUsage | undefined;
  private pid: number | undefined;
  private interruption: Interruption | undefined;
  private readonly ended = new AbortController();

  private constructor(private readonly facts: CommandFacts) {}

  get environment(): Environment {
    return this.facts.environment;
  }

  /** The command was started: loads the rest, takes in what comes, and interrupts it when its run is cancelled. */
  begin(pid: number | undefined): void {
    if (this.facts.span !== null && pid !== undefined) this.usage = new ProcessUsage(pid, this.facts.context.clock);
    this.pid = pid;
    this.live = this.load();
    // Awaited at the end; until then its failure is nobody's.
    this.live.catch(() => undefined);
    const { live } = this;
    if (pid !== undefined) this.takeBack = this.giveWayOnceShown(pid, live);
    const { command, inlet } = this.facts;
    // What one engine command left is copied before the next one can write its own in its place.
    if (mayRunSeveral(command)) {
      inlet.parked.endAfter((bytes) =>
        live.then(
          (records) => records.copyArtifacts(bytes),
          () => undefined,
        ),
      );
    }
  }

  /** Before all that takes a while to load: should this process be killed, its folder says whose command it is. */
  private async load(): Promise<LiveRecords> {
    const { folder } = this.facts;
    let lock: DataFolderLock | undefined;
    if (folder !== undefined) {
      try {
        writeSpoolEntry(folder, spoolEntryOf(this.facts, null));
        // The lock says that the rest is there: it comes last.
        lock = await lockFolder(folder, this.facts);
      } catch {
        // Its telemetry is taken in, as long as this process lives.
      }
    }
    const { LiveRecords } = await import('./live-records.js');
    return new LiveRecords(this.facts, lock, () => this.cancel());
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
    await (await this.takeBack)?.();
    this.usage?.stop();
    this.interruption?.stop();
    await (await this.live)?.end(ending, stop, { span, onStage });
  }

  /**
   * Where people look on, the command goes first only once they see its first records: what brings those in is loaded while
   * the engine starts, which leaves processors idle that it keeps busy afterwards.
   */
  private async giveWayOnceShown(commandPid: number, live: Promise<LiveRecords>): Promise<TakeBack | undefined> {
    const { signal } = this.ended;
    const shown = live.then((records) => records.firstShown()).catch(() => undefined);
    await Promise.race([shown, pause(this.facts.context.clock, MAX_SHARE_MS, signal)]);
    return signal.aborted ? undefined : giveWay(commandPid);
  }

  /** Everything that the command has started is signalled, as by a terminal's Ctrl+C: a shell does not pass a signal on. */
  private cancel(): void {
    const { notices, context } = this.facts;
    const { pid } = this;
    if (this.ended.signal.aborted || this.interruption !== undefined || pid === undefined) return;
    notices.say('the run is cancelled: the command is interrupted');
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

function callersTrace(environment: Environment, notices: Notices): TraceContext | null {
  const text = nonEmpty(environment.TRACEPARENT);
  if (text === undefined) return null;
  const parent = parseTraceparent(text);
  if (parent === undefined)
    notices.say(`TRACEPARENT is ${JSON.stringify(text)}, which is no W3C trace context; it is ignored`);
  return parent ?? null;
}

/** The kernel takes it back when this process dies in whatever way. @throws what keeps the folder from being locked. */
async function lockFolder(folder: string, { context: { pid }, startedUnixMs }: CommandFacts): Promise<DataFolderLock> {
  const { DataFolderLock } = await import('../../store/data-folder-lock.js');
  return DataFolderLock.acquire(folder, { pid, since: new Date(startedUnixMs).toISOString(), address: null });
}
