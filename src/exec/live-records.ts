import { existsSync } from 'node:fs';
import { stat } from 'node:fs/promises';
import { join } from 'node:path';
import { askBridge } from '../cli/bridge/bridge.js';
import { type Clock, pause, type Timer } from '../core/clock.js';
import { reasonOf } from '../core/errors.js';
import { type Lazy, lazy } from '../core/lazy.js';
import { isInheritedByOthers, isWrittenByOthers } from '../core/process-tree.js';
import { cut } from '../core/text.js';
import { JsonlTail, REJECTS_FILE, type Reject, RejectFile, type TailPosition } from '../files/feature.js';
import { stepInEnvironment } from '../record/attributes.js';
import { ConsumeError, type Delivery, type Signal } from '../record/record-batch.js';
import type { TraceId } from '../record/telemetry-record.js';
import { commandReports, type EndedEngineCommand, endedEngineCommands } from '../report/feature.js';
import type { DataFolderLock } from '../storage/data-folder-lock.js';
import { BufferedRequests } from './buffered-requests.js';
import type { CommandEntry } from './command-entry.js';
import { mayRunSeveral } from './command-environment.js';
import {
  type ChildEnding,
  type CommandFacts,
  commandEntryOf,
  type Notices,
  stepStartOf,
  toCommandEnding,
} from './command-facts.js';
import { removePrivateFolder, SPOOL_FOLDER, SPOOLED_OTLP_FILE, writeCommandEntry } from './command-folder.js';
import type { CommandOutput } from './command-output.js';
import { CommandRecords } from './command-records.js';
import { type CommandSpan, toPassthroughBatch } from './command-span.js';
import { CommandSteps, isProcess } from './command-steps.js';
import { bridgeChoiceOf, CommandTarget } from './command-target.js';
import type { EndedEngine } from './engine-snapshots.js';
import type { ExecTarget, StepTarget } from './exec-target.js';
import type { RequestReader } from './request-reader.js';
import { StepArtifacts } from './step-artifacts.js';

/** What OTLP bodies may take in memory while the JSONL is read, in bytes: 64 MiB; beyond it they go to the private folder. */
const MAX_MEMORY_BYTES = 64 * 1024 * 1024;
/** How long lines are gathered while the command runs, in milliseconds: each look takes processor time from it. */
const GATHER_MS = 1_000;
/** How long requests under way may take when the command has ended, in milliseconds. */
const LAST_REQUESTS_MS = 1_000;
/** How long reports may take, in milliseconds; one of 35,000 records takes about two seconds. */
const REPORT_MS = 30_000;
/** How long the parts of the store may take to close, in milliseconds, as far as time is left. */
const CLOSE_MS = 2_000;
const MIN_CLOSE_MS = 200;
/** How long the line about how a command ended may be where the terminal does not say, and how short what stands in it of the cause, in characters. */
const MAX_LINE = 300;
const MIN_CAUSE = 60;
/** What is there when the command has ended is brought in for at least this long, in milliseconds, however short exports are kept. */
const MIN_BRING_IN_MS = 2_000;
/** A command that has run for so long gets its decoders loaded, so that no request, and not its end, need wait for that; in milliseconds. */
const WARM_UP_MS = 150;

/** The records of a command under way: from its file and its port to where they belong. */
export class LiveRecords {
  private readonly giveUp = new AbortController();
  private readonly hasEnded = new AbortController();
  private readonly records: CommandRecords;
  private readonly tail: JsonlTail;
  private readonly buffered: BufferedRequests;
  private readonly rejects: CommandRejects;
  /** Of the command's port; a command that is over at once and sends nothing does without. */
  private readonly reader: Lazy<RequestReader>;
  private readonly warmUp: Timer;
  private readonly target: CommandTarget;
  private readonly steps: CommandSteps;
  private readonly running: Promise<void>;
  private readonly artifacts: StepArtifacts;
  /** How long the command's file was when the first records were delivered, in bytes. */
  private firstBytes: number | undefined;
  private onFirstStored: () => void = () => {};
  /** Resolves when the first records are stored, with what the command had written by then. */
  readonly firstStored = new Promise<void>((resolve) => {
    this.onFirstStored = resolve;
  });
  /** Traces that are known to be the command's. */
  readonly traceIds: TraceId[] = [];
  /** Traces in a shared file that may be the command's. */
  readonly seenTraceIds: TraceId[] = [];
  /** The end that is noted in the command's folder. */
  private noted: CommandEntry['end'] = null;
  private trouble: string | undefined;
  private isTroubleReported = false;

  private readonly lock: DataFolderLock | undefined;

  /**
   * @param lock says to others that the command's folder is not left behind
   * @param onCancelled the run was cancelled while the command is under way; called once
   */
  constructor(
    private readonly facts: CommandFacts,
    { lock, output }: { readonly lock: DataFolderLock | undefined; readonly output: CommandOutput },
    onCancelled: () => void,
  ) {
    this.lock = lock;
    const { context, receiver, logger, folder, file } = facts;
    const { clock } = context;
    this.artifacts = new StepArtifacts(facts, output);
    this.steps = new CommandSteps(
      () => this.target.open(),
      stepStartOf(facts),
      facts.environment.OTEL_RESOURCE_ATTRIBUTES ?? '',
    );
    this.reader = lazy(async () => {
      const { RequestReader: Reader } = await import('./request-reader.js');
      const { 'engine-names': engineNames } = facts.configuration;
      return new Reader({ clock, logger, engineNames }, async (decoded, signal, bytes) => {
        await this.records.buffer(decoded, signal, bytes);
      });
    });
    // The sender's answer says why it cannot be loaded.
    this.warmUp = clock.after(WARM_UP_MS, () => void this.reader.get().catch(() => undefined));
    receiver.answerWith((request, response) => {
      const answered = this.reader.get().then((reader) => reader.answer(request, response));
      answered.catch((error: unknown) => response.destroy(error instanceof Error ? error : undefined));
    });
    receiver.unread.handOverTo((signal, bytes) => this.takeAnswered(signal, bytes));
    this.buffered = new BufferedRequests({
      path: join(folder ?? context.tempDir, SPOOLED_OTLP_FILE),
      maxMemoryBytes: MAX_MEMORY_BYTES,
      codecs: async () => (await this.reader.get()).codecs,
    });
    this.rejects = new CommandRejects(join(facts.configuration['data-dir'], REJECTS_FILE), clock, facts.notices);
    this.target = this.chooseTarget();
    const { stepId } = facts;
    const watch = { stepId, clock, hasEnded: this.hasEnded.signal, onCancelled };
    void watchCancellation(this.target.forCancellation(), watch);
    const looking = { from: file?.from, isWatched: false, gatherMs: GATHER_MS };
    this.tail = new JsonlTail(file?.path ?? '', looking, clock);
    this.records = new CommandRecords({
      lines: file === undefined ? [] : this.tail.chunks(this.giveUp.signal),
      isShared: file?.isShared === true,
      isWritten: () => isWrittenByOthers(file?.path ?? '', context.pid),
      onTrace: (traceId) => this.noteTrace(traceId),
      onSeen: (traceId) => {
        this.seenTraceIds.push(traceId);
        // Of several none can be told to be the command's.
        if (this.seenTraceIds.length <= 2) this.noteEnd(this.noted);
      },
      buffered: this.buffered,
      hasUnreadLines: (taken) => this.hasUnreadLines(taken),
      decode: async (signal, bytes) => (await this.reader.get()).decode(signal, bytes),
      onRejects: (rejects) => this.rejects.addLines(file?.path ?? '', rejects),
      target: { consume: (delivery) => this.consume(delivery) },
      isOtlpExpected: isOtlpExpected(facts),
      clock,
    });
    this.running = this.records.run(this.giveUp.signal);
    this.running.catch(() => undefined);
  }

  /** An engine command ends: copies what it left. Never throws. @param bytes of its last request, not answered yet */
  copyArtifacts(bytes: Uint8Array): Promise<void> {
    return this.artifacts.snapshots.takeBefore(bytes);
  }

  /** Brings in what is left, judges and exports; says what could not be done. */
  async end(
    ending: ChildEnding,
    stop: AbortSignal,
    { span, onStage }: { readonly span: CommandSpan | undefined; readonly onStage: (timeMs: number) => void },
  ): Promise<void> {
    const { context, options, receiver, notices, folder } = this.facts;
    const { clock } = context;
    this.hasEnded.abort();
    const endedUnixMs = clock.nowUnixMs();
    this.warmUp.cancel();
    const deadline = new AbortController();
    const giveUp = () => this.giveUp.abort();
    const bringInMs = Math.max(options.flushTimeoutMs, MIN_BRING_IN_MS);
    let untilMs = clock.monotonicMs() + bringInMs;
    onStage(bringInMs);
    const timers = [clock.after(options.flushTimeoutMs, () => deadline.abort()), clock.after(bringInMs, giveUp)];
    stop.addEventListener('abort', giveUp, { once: true });
    const hasFailed = ending.kind !== 'exited' || ending.exitCode !== 0;
    const finding = ending.kind === 'notStarted' ? undefined : this.artifacts.find(hasFailed);
    await receiver.close(AbortSignal.timeout(LAST_REQUESTS_MS));
    const unread = receiver.unread.settle();
    await unread.catch(() => undefined);
    // Should this process be killed, the process that takes in the folder knows how the command ended.
    this.noteEnd({ ending: toCommandEnding(ending), endedUnixMs });
    const { records } = this;
    this.tail.finish();
    records.end();
    try {
      await unread;
      await finding;
      await this.running;
      this.rejects.say();
      if (await this.isWrittenByCommand()) {
        throw new Error('an engine process that the command started is still running');
      }
      if (span !== undefined) {
        const { consumer } = await this.target.open();
        await consumer.consume({ batches: [], passthrough: [toPassthroughBatch(span)] });
      }
      await this.artifacts.divide(this.steps.steps);
      if (this.artifacts.count > 0) await this.target.open();
      const target = await this.target.openForEnd();
      await target.settle();
      const end = { ending: toCommandEnding(ending), endedUnixMs };
      await this.reportEnd(target, end);
      const hasArtifacts = this.artifacts.count > 0;
      if (hasArtifacts) {
        // However long they take, as long as it goes on; exports have their time afterwards.
        for (const timer of timers) timer.cancel();
        // Who watches reads the cause now, not when the last of thousands of artifacts is there.
        onStage(REPORT_MS);
        if (options.isLineWanted) await this.sayInOneLine(target);
        onStage(Number.POSITIVE_INFINITY);
        await this.artifacts.keep(await this.target.open(), stop);
        onStage(bringInMs);
        untilMs = clock.monotonicMs() + bringInMs;
        timers.push(clock.after(options.flushTimeoutMs, () => deadline.abort()));
      }
      const isFolderNeeded = await this.leaveArtifacts(target, end);
      const left = await target.finish(records.traceIds, AbortSignal.any([deadline.signal, stop]));
      if (left !== null) notices.say(left);
      onStage(REPORT_MS);
      await this.report(target);
      if (options.isLineWanted && !hasArtifacts) await this.sayInOneLine(target);
      this.lock?.release();
      if (folder !== undefined && !isFolderNeeded && !(await this.mayGoOn())) removePrivateFolder(folder);
    } catch (error) {
      await this.leave(error, { ending: toCommandEnding(ending), endedUnixMs });
      this.lock?.release();
    } finally {
      for (const timer of timers) timer.cancel();
      await this.buffered.close();
      const closeMs = Math.max(MIN_CLOSE_MS, Math.min(CLOSE_MS, Math.ceil(untilMs - clock.monotonicMs())));
      await this.target.close(AbortSignal.timeout(closeMs)).catch((error: unknown) => {
        // Of one trouble one line: a full disk has the store close badly, too.
        if (!this.isTroubleReported) notices.say(reasonOf(error));
      });
    }
  }

  /** Where the reports of the command are read from; no traces where it sent nothing. */
  private get reported() {
    const { configuration, context, file } = this.facts;
    return { traceIds: [...this.records.traceIds], configuration, context, file: file?.path };
  }

  private placeIn({ where }: StepTarget): string {
    return `${[...this.records.traceIds].join(', ')} in ${where}`;
  }

  /** Writes the reports and the summary that were asked for. Never throws. */
  private async report(target: StepTarget): Promise<void> {
    const { options, outputs, notices } = this.facts;
    const { isSummaryWanted, isCiSummaryWanted } = options;
    const of = this.reported;
    if (of.traceIds.length === 0) return;
    const place = this.placeIn(target);
    try {
      if (isSummaryWanted || isCiSummaryWanted || outputs.length > 0) {
        const ended = await commandReports({ ...of, outputs, isSummaryWanted: isCiSummaryWanted });
        if (isSummaryWanted) await this.sayEnded(ended, place, target);
      }
    } catch (error) {
      notices.say(`there is no report of the command: ${reasonOf(error)}`);
      if (isSummaryWanted) notices.say(place);
    }
  }

  /** The worst of the engine commands with its cause, and what shows more, for who watches. Never throws. */
  private async sayInOneLine(target: StepTarget): Promise<void> {
    const { options, notices, context } = this.facts;
    const of = this.reported;
    if (of.traceIds.length === 0) return;
    const ended = await endedEngineCommands(of).catch(() => []);
    const shown = ended.find(({ isSuccess }) => !isSuccess) ?? ended.at(-1);
    const [page] = await this.pagesOf(ended, target).catch(() => []);
    const isHere = !URL.canParse(target.where) && shown !== undefined;
    const [runId] = isHere ? await this.runIdsOf([shown], target) : [];
    const report = runId === undefined ? this.placeIn(target) : `run-bridge report ${runId}${options.folderArgument}`;
    const where = page ?? report;
    if (shown === undefined) return notices.say(where);
    const all = ended.length > 1 ? ` (one of ${ended.length} commands)` : '';
    const room = (context.stdoutColumns ?? MAX_LINE) - `run-bridge: ${all}; ${where}`.length;
    notices.say(`${cut(shown.line, Math.max(MIN_CAUSE, room))}${all}; ${where}`);
  }

  /** What people look at comes last: the cause, and the page where there is one. @param place where the records are */
  private async sayEnded(ended: readonly EndedEngineCommand[], place: string, target: StepTarget): Promise<void> {
    const { notices } = this.facts;
    const pages = await this.pagesOf(ended, target);
    if (pages.length > 0) notices.say(place);
    for (const { line } of ended) notices.say(line);
    for (const page of pages) notices.say(page);
    if (pages.length === 0) notices.say(place);
  }

  /** Addresses of the runs' pages, where a bridge took the records and tells where its pages are. */
  private async pagesOf(ended: readonly EndedEngineCommand[], target: StepTarget): Promise<readonly string[]> {
    const { where } = target;
    const pagesUrl = URL.canParse(where) ? (await askBridge(where))?.pagesUrl : undefined;
    if (pagesUrl == null) return [];
    return [...new Set(await this.runIdsOf(ended, target))].map((runId) => `${pagesUrl}/runs/${runId}`);
  }

  private async runIdsOf(
    ended: readonly EndedEngineCommand[],
    { registry }: StepTarget,
  ): Promise<readonly EndedEngineCommand['runId'][]> {
    const known = ended.flatMap(({ runId }) => runId ?? []);
    if (known.length > 0) return known;
    // A bridge elsewhere alone knows the number, or it is not written yet; the step has begun already, and gets the same one again.
    const step = await registry.register(stepStartOf(this.facts)).catch(() => undefined);
    return step === undefined ? [] : [step.runId];
  }

  /** Whether an engine of the command still writes its file. */
  private isWrittenByCommand(): Promise<boolean> {
    const { file, stepId, context } = this.facts;
    const step = file?.isShared === true ? stepInEnvironment(stepId) : undefined;
    return isWrittenByOthers(file?.path ?? '', context.pid, step);
  }

  /** Whether something that the command has left in the background may still run an engine: its folder waits for that. */
  private mayGoOn(): Promise<boolean> {
    const { stepId, context } = this.facts;
    return isInheritedByOthers(stepInEnvironment(stepId), context.pid, { isInSession: true });
  }

  private async hasUnreadLines(taken: TailPosition | undefined): Promise<boolean> {
    const { file } = this.facts;
    if (file === undefined) return false;
    const found = await stat(file.path).catch(() => undefined);
    return (found?.size ?? 0) > (taken?.offset ?? file.from?.offset ?? 0);
  }

  private async consume(delivery: Delivery): Promise<void> {
    // Where the engine sends nothing, its file alone says that it ends.
    if (!isOtlpExpected(this.facts) && mayRunSeveral(this.facts.command)) {
      for (const engine of endedEngines(delivery)) void this.artifacts.snapshots.takeAtEnd(engine);
    }
    await this.steps.consume(delivery);
    await this.noteStored();
  }

  private async noteStored(): Promise<void> {
    const { file } = this.facts;
    this.firstBytes ??= file === undefined ? 0 : ((await stat(file.path).catch(() => undefined))?.size ?? 0);
    if (this.records.takenBytes >= this.firstBytes) this.onFirstStored();
  }

  /** What turns out to be no OTLP cannot be refused any more. @throws ConsumeError */
  private async takeAnswered(signal: Signal, bytes: Uint8Array): Promise<void> {
    const { snapshots } = this.artifacts;
    try {
      const isBuffered = await this.records.bufferUnread(signal, bytes);
      if (isBuffered && !snapshots.has(bytes)) return;
      const reader = await this.reader.get();
      if (!isBuffered) await reader.takeAnswered(signal, bytes);
      if (!snapshots.has(bytes)) return;
      const { delivery } = await reader.decode(signal, bytes);
      for (const engine of endedEngines(delivery)) snapshots.bind(bytes, engine);
    } catch (error) {
      if (error instanceof ConsumeError) throw error;
      await this.rejects.addRequest(signal, bytes, reasonOf(error));
    }
  }

  /** What was not said of the traces before is said now. */
  private async reportEnd(
    { registry }: StepTarget,
    { ending, endedUnixMs }: NonNullable<CommandEntry['end']>,
  ): Promise<void> {
    const { notices } = this.facts;
    try {
      await this.steps.attach(registry);
      await this.artifacts.announce(registry);
      await this.steps.end(registry, ending, endedUnixMs);
    } catch (error) {
      this.isTroubleReported = true;
      notices.say(reasonOf(error));
    }
  }

  /** @returns whether the command's folder is needed for them. */
  private leaveArtifacts(
    { registry, leftFor: to }: StepTarget,
    end: NonNullable<CommandEntry['end']>,
  ): Promise<boolean> {
    const { folder } = this.facts;
    const next = `${this.nextStart(folder, to)} takes them in`;
    return this.artifacts.leave(folder, next, registry, async () => {
      if (folder !== undefined) writeCommandEntry(folder, { ...commandEntryOf(this.facts, end), to, file: null });
    });
  }

  /** What could not be brought in stays where the next start, or the user, finds it. */
  private async leave(error: unknown, end: NonNullable<CommandEntry['end']>): Promise<void> {
    const { notices, folder, file, options } = this.facts;
    const reason = this.trouble ?? reasonOf(error);
    this.isTroubleReported = true;
    const isLeft = folder !== undefined && (await this.save(folder, end));
    const isEmpty = this.buffered.count === 0 && (file === undefined || !existsSync(file.path));
    if (!isLeft || (isEmpty && this.artifacts.count === 0)) {
      if (folder !== undefined) removePrivateFolder(folder);
      notices.say(`${reason}; telemetry of the command is not kept`);
      return;
    }
    const rest = `${this.nextStart(folder, options.to ?? null)} imports it`;
    notices.say(`${reason}; telemetry of the command is left in ${folder}: ${rest}`);
  }

  /** What imports the records left in a folder. */
  private nextStart(folder: string | undefined, to: string | null): string {
    const isInSpool = folder?.startsWith(join(this.facts.configuration['data-dir'], SPOOL_FOLDER)) === true;
    if (!isInSpool) return 'run-bridge import';
    return to === null ? 'the next start of run-bridge' : `the next exec --to ${to}`;
  }

  private async save(folder: string, end: NonNullable<CommandEntry['end']>): Promise<boolean> {
    try {
      await this.buffered.saveAll();
      // Those of which no record could be handed over.
      for (const traceId of this.records.traceIds) this.steps.note(traceId);
      // Without them the records are left all the same.
      await this.saveArtifacts(folder).catch(() => undefined);
      writeCommandEntry(folder, commandEntryOf(this.facts, end, this));
      return true;
    } catch {
      return false;
    }
  }

  private async saveArtifacts(folder: string): Promise<void> {
    await this.artifacts.divide(this.steps.steps);
    await this.artifacts.copyInto(folder);
  }

  /** In a file that others write, too, a process that takes in the folder finds no other traces than these. */
  private noteTrace(traceId: TraceId): void {
    this.traceIds.push(traceId);
    if (this.facts.file?.isShared === true) this.noteEnd(this.noted);
  }

  private noteEnd(end: CommandEntry['end']): void {
    const { folder } = this.facts;
    this.noted = end;
    try {
      if (folder !== undefined) writeCommandEntry(folder, commandEntryOf(this.facts, end, this));
    } catch {
      // The command's end is registered all the same, while this process lives.
    }
  }

  private chooseTarget(): CommandTarget {
    const choice = {
      ...bridgeChoiceOf(this.facts),
      logger: this.facts.logger,
      giveUp: this.giveUp.signal,
      onTrouble: (message: string) => {
        this.trouble = message;
      },
    };
    return new CommandTarget(choice, stepStartOf(this.facts));
  }
}

function isOtlpExpected({ environment }: CommandFacts): boolean {
  return /^(1|true)$/i.test(environment.DBT_EXPORT_TO_OTLP ?? '');
}

/** Engine commands that say that they end. */
function endedEngines({ batches }: Delivery): readonly EndedEngine[] {
  return batches.flatMap(({ records }) =>
    records.flatMap((record) => {
      const { recordType, traceId, spanId } = record;
      return recordType === 'SpanEnd' && isProcess(record) ? [{ traceId, spanId }] : [];
    }),
  );
}

/** How much of a request that cannot be read is kept, in bytes: as base64 about as much as of a line. */
const KEPT_BYTES = 3 * 1024;

/** Telemetry of a command that could not be read: kept in a file, and counted. */
export class CommandRejects {
  private readonly file: RejectFile;
  private count = 0;

  /** @param path of the file that keeps them */
  constructor(
    path: string,
    clock: Clock,
    private readonly notices: Notices,
  ) {
    this.file = new RejectFile(path, clock, (trouble) => notices.say(trouble));
  }

  /** @param path of the file in which they stand */
  async addLines(path: string, rejects: readonly Reject[]): Promise<void> {
    for (const { count } of rejects) this.count += count;
    await this.file.add(path, rejects);
  }

  /** A request that was answered before it was read. */
  async addRequest(signal: Signal, bytes: Uint8Array, reason: string): Promise<void> {
    const text = Buffer.from(bytes.subarray(0, KEPT_BYTES)).toString('base64');
    this.count += 1;
    await this.file.add('OTLP', [{ place: `POST /v1/${signal}`, reason, count: 1, text }]);
  }

  /** Says how many there were, if there were any. */
  say(): void {
    if (this.count === 0) return;
    this.notices.say(`lines or requests of telemetry that cannot be read: ${this.count}, kept in ${this.file.path}`);
  }
}

/** How often it is asked whether the run was cancelled, in milliseconds. */
const ASK_MS = 2_000;

/** Whose cancellation is watched for, and what to do about it. */
export interface CancellationWatch {
  readonly stepId: string;
  readonly clock: Clock;
  /** Aborts when the command has ended. */
  readonly hasEnded: AbortSignal;
  readonly onCancelled: () => void;
}

/** Asks the registry, while a command is under way, whether its run was cancelled. Never fails: a registry that cannot tell is asked again. */
export async function watchCancellation(
  target: Promise<Pick<ExecTarget, 'registry'>>,
  { stepId, clock, hasEnded, onCancelled }: CancellationWatch,
): Promise<void> {
  const registry = await target.then(
    (found) => found.registry,
    () => undefined,
  );
  while (registry !== undefined && !hasEnded.aborted) {
    const isCancelled = await registry.isCancelled(stepId).catch(() => false);
    if (isCancelled === null || hasEnded.aborted) return;
    if (isCancelled) {
      onCancelled();
      return;
    }
    await pause(clock, ASK_MS, hasEnded);
  }
}
