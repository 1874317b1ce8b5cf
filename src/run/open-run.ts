import { type Clock, EarliestTimer } from '../core/clock.js';
import { type Appended, type AppendedPiece, loggedRecords } from '../log/appended.js';
import type { LoggedRecord } from '../log/record-log.js';
import { accountOf } from '../record/attributes.js';
import type { TraceId, UnixNano } from '../record/telemetry-record.js';
import type { StepRow } from '../storage/executions.js';
import type { RunRow } from '../storage/run-store.js';
import { InvocationAssigner } from './invocation-assigner.js';
import { NodeFacts } from './node-outcome.js';
import { formatRun, formatStep } from './run-document.js';
import type { RunEvent } from './run-event.js';
import type { RunTrackerConfig, RunTrackerDeps } from './run-tracker-config.js';
import { type InvocationParts, namesOf, TraceSteps } from './trace-steps.js';
import {
  countVerdicts,
  type InvocationStep,
  type InvocationSummary,
  type NodeCounts,
  type RunSummary,
  selectedNodes,
  type VerdictEvidence,
  type VerdictWithReason,
  verdictOf,
  wasStopped,
  withEnding,
} from './verdict.js';

/** The waiting times of a tracker's configuration. */
export type EndingTimes = Pick<RunTrackerConfig, 'quietAfterProcessMs' | 'quietAfterInvocationMs' | 'silenceMs'>;

/** Maps an invocation to its command. */
type StepFinder = Pick<TraceSteps, 'stepOf'>;

/** A trace with more invocations has no pending verdict: it would be as large as the state it replaces. */
const MAX_FORECAST = 8;

/** What a trace's records add up to so far. */
export class RunState {
  private readonly assigner = new InvocationAssigner();

  constructor(private readonly times: EndingTimes) {}

  /** Memory that it takes, in bytes, about. */
  get memoryBytes(): number {
    return this.assigner.memoryBytes;
  }

  /** @param arrivalMs when they arrived, in monotonic milliseconds */
  add(records: readonly LoggedRecord[], arrivalMs: number): void {
    for (const record of records) this.assigner.add(record, arrivalMs);
  }

  /** @param pieces as they were appended; borrowed for the time of the call. */
  addPieces(pieces: readonly AppendedPiece[], arrivalMs: number): void {
    for (const piece of pieces) {
      if (piece.items !== undefined) this.assigner.addItems(piece.items, piece.offset, arrivalMs);
      else this.add(loggedRecords(piece), arrivalMs);
    }
  }

  /** Ids of the steps that its invocations' resources name. */
  get stepIds(): ReadonlySet<string> {
    return new Set(this.assigner.invocations.flatMap(({ stepId }) => stepId ?? []));
  }

  /** @param steps the commands; left out if no commands run here */
  judge(nowMs: number, steps?: StepFinder): RunJudgement {
    const { invocations: all } = this.assigner;
    const rows = all.map((parts) => rowOf(parts, steps));
    const invocations = all.map((parts, position) => {
      const row = rows[position];
      const isOver = this.endOf(parts, row, nowMs) <= nowMs;
      return summarizeInvocation(parts, position + 1, isOver, row === undefined ? null : registeredStep(row, rows));
    });
    return { invocations, nextEndMs: this.endingOf(all, nowMs, steps).nextEndMs };
  }

  /** As `judge`, without summing up a single invocation. */
  ending(nowMs: number, steps?: StepFinder): RunEnding {
    return this.endingOf(this.assigner.invocations, nowMs, steps);
  }

  /**
   * Returns its verdict if no more records arrive and no steps change; `undefined` if unknown: if
   * invocations end at different times, one after the other, or belong to steps.
   */
  pendingVerdict(logBytes: number): PendingVerdict | undefined {
    const { invocations } = this.assigner;
    const [first] = invocations;
    if (first === undefined || invocations.length > MAX_FORECAST) return undefined;
    const endMs = this.endOf(first, undefined, 0);
    const isKnown = invocations.every((parts) => parts.stepId === null && this.endOf(parts, undefined, 0) === endMs);
    if (!isKnown) return undefined;
    const summaries = invocations.map((parts, position) => summarizeInvocation(parts, position + 1, true, null));
    return new PendingVerdict(summaries, endMs, logBytes);
  }

  private endingOf(invocations: readonly InvocationParts[], nowMs: number, steps?: StepFinder): RunEnding {
    let nextEndMs: number | null = null;
    let overCount = 0;
    for (const parts of invocations) {
      const endMs = this.endOf(parts, rowOf(parts, steps), nowMs);
      if (endMs <= nowMs) overCount += 1;
      else nextEndMs = Math.min(endMs, nextEndMs ?? endMs);
    }
    return { count: invocations.length, overCount, nextEndMs };
  }

  /** Returns when an invocation is over unless more of its records come. */
  private endOf(parts: InvocationParts, step: StepRow | undefined, nowMs: number): number {
    const ending = step?.ending ?? null;
    // The program that ran its command has delivered everything and reported its end.
    if (ending !== null && ending.kind !== 'unknown') return Number.NEGATIVE_INFINITY;
    const { hasInvocationEnd, hasProcessEnd, lastArrivalMs } = parts;
    // No program is left that would deliver more than what is in transit.
    if ((hasInvocationEnd && hasProcessEnd) || ending !== null) return lastArrivalMs + this.times.quietAfterProcessMs;
    if (hasInvocationEnd || hasProcessEnd) return lastArrivalMs + this.times.quietAfterInvocationMs;
    // A command that is known to be running may be silent for any time.
    return (step?.ending === null ? nowMs : lastArrivalMs) + this.times.silenceMs;
  }
}

function rowOf(parts: InvocationParts, steps: StepFinder | undefined): StepRow | undefined {
  return steps?.stepOf(parts.stepId, parts.startTimeUnixNano, accountOf(parts.resource));
}

function registeredStep(row: StepRow, rows: readonly (StepRow | undefined)[]): RegisteredStep {
  const isSole = row.traceCount <= 1 && rows.filter((other) => other?.stepId === row.stepId).length === 1;
  const { stepId, stepIndex, run, ending } = row;
  const { runId, runKey, job, environment, project, reason } = run;
  const step: InvocationStep = { stepId, stepIndex, runId, runKey, job, environment, project, reason, ending };
  return { step, isSole };
}

/** A run's invocations at a point in time. */
export interface RunJudgement {
  /** With a verdict each where it is over. */
  readonly invocations: readonly InvocationSummary[];
  /** When the next of them is over unless more records come, in monotonic milliseconds; `null` when all are. */
  readonly nextEndMs: number | null;
}

/** The invocations of a run that have ended at a point in time, without their summaries, which are expensive. */
export interface RunEnding {
  readonly count: number;
  readonly overCount: number;
  /** As in `RunJudgement`. */
  readonly nextEndMs: number | null;
}

/**
 * The verdict of a run if no more records arrive: computed when its state is evicted, so that its log need
 * not be read again for it. One or two kilobytes.
 */
export class PendingVerdict {
  /**
   * @param invocations with their verdicts
   * @param endMs when all of them are over, in monotonic milliseconds
   * @param logBytes length of the record log that this is about
   */
  constructor(
    private readonly invocations: readonly InvocationSummary[],
    readonly endMs: number,
    readonly logBytes: number,
  ) {}

  /** Memory that counts against the bound of open runs: none that is worth counting. */
  readonly memoryBytes = 0;

  /** As that of `RunState`. */
  judge(nowMs: number): RunJudgement {
    if (nowMs >= this.endMs) return { invocations: this.invocations, nextEndMs: null };
    const invocations = this.invocations.map((each) => ({ ...each, verdict: null, statusMessage: null }));
    return { invocations, nextEndMs: this.endMs };
  }

  /** As that of `RunState`. */
  ending(nowMs: number): RunEnding {
    const count = this.invocations.length;
    const isOver = nowMs >= this.endMs;
    return { count, overCount: isOver ? count : 0, nextEndMs: isOver ? null : this.endMs };
  }
}

/** The step of an invocation. */
export interface RegisteredStep {
  readonly step: InvocationStep;
  /** Whether the step has no other invocation, as far as known. */
  readonly isSole: boolean;
}

/**
 * Summarises an invocation; a pure function of its parts.
 * @param index its position in the trace, from 1.
 * @param isOver whether it has ended, or is silent permanently: then it gets its verdict.
 * @param registered its step, if registered
 */
export function summarizeInvocation(
  parts: InvocationParts,
  index: number,
  isOver: boolean,
  registered: RegisteredStep | null = null,
): InvocationSummary {
  const nodes = nodesOf(parts);
  const nodeCounts = countVerdicts(selectedNodes(nodes.values()));
  const { invocation } = parts;
  const ending = registered?.step.ending ?? null;
  const isStopped = ending !== null && wasStopped(ending);
  const verdict = isOver ? judge(evidenceOf(parts, nodes, nodeCounts, isStopped), registered) : null;
  return {
    index,
    spanId: parts.spanId,
    processSpanId: parts.process?.spanId ?? null,
    outerParentSpanId: parts.outerParentSpanId,
    hasInvocationEnd: parts.hasInvocationEnd,
    hasProcessEnd: parts.hasProcessEnd,
    isAmbiguous: parts.isAmbiguous,
    command: invocation?.command ?? null,
    rawCommand: invocation?.rawCommand ?? null,
    resource: parts.resource,
    startTimeUnixNano: parts.startTimeUnixNano,
    endTimeUnixNano: parts.endTimeUnixNano,
    verdict: verdict?.verdict ?? null,
    statusMessage: verdict?.statusMessage ?? null,
    totalErrors: invocation?.totalErrors ?? null,
    totalWarnings: invocation?.totalWarnings ?? null,
    nodeCounts,
    recordCount: parts.groups.reduce((sum, group) => sum + group.recordCount, 0),
    parquetFile: index === 1 ? 'telemetry.parquet' : `telemetry-${index}.parquet`,
    step: registered?.step ?? null,
  };
}

function judge(evidence: VerdictEvidence, registered: RegisteredStep | null): VerdictWithReason {
  const verdict = verdictOf(evidence);
  const ending = registered?.step.ending ?? null;
  return registered === null || ending === null
    ? verdict
    : withEnding(verdict, evidence, { ending, isSole: registered.isSole });
}

/** Returns the nodes of all groups of an invocation; those of its only group as they are. */
function nodesOf({ groups }: InvocationParts): ReadonlyMap<string, NodeFacts> {
  const withNodes = groups.filter((group) => group.nodes.size > 0);
  const [first, ...others] = withNodes;
  if (first === undefined || others.length === 0) return first?.nodes ?? new Map();
  const merged = new Map<string, NodeFacts>(first.nodes);
  const own = new Set<NodeFacts>();
  for (const group of others) {
    for (const [uniqueId, facts] of group.nodes) {
      const known = merged.get(uniqueId);
      const target = known !== undefined && own.has(known) ? known : new NodeFacts();
      if (known !== undefined && known !== target) target.merge(known);
      target.merge(facts);
      own.add(target);
      merged.set(uniqueId, target);
    }
  }
  return merged;
}

function evidenceOf(
  parts: InvocationParts,
  nodes: ReadonlyMap<string, NodeFacts>,
  nodeCounts: NodeCounts,
  isStopped: boolean,
): VerdictEvidence {
  return {
    hasInvocationEnd: parts.hasInvocationEnd,
    hasProcessEnd: parts.hasProcessEnd,
    status: parts.invocation?.status ?? null,
    totalErrors: parts.invocation?.totalErrors ?? null,
    rawCommand: parts.invocation?.rawCommand ?? null,
    nodeCounts,
    // Asked of interrupted commands alone: it is found among all nodes.
    get firstFailure() {
      return firstFailureOf(nodes);
    },
    interruptedAtUnixNano: earliest(parts.groups.map((group) => group.interruptedAtUnixNano)),
    hasCancelMessage: parts.groups.some((group) => group.hasCancelMessage),
    errorLogCount: parts.groups.reduce((sum, group) => sum + group.errorLogCount, 0),
    isBareProcess: parts.groups.every((group) => group.isBareProcess),
    isStopped,
  };
}

function firstFailureOf(nodes: ReadonlyMap<string, NodeFacts>): VerdictEvidence['firstFailure'] {
  let first: VerdictEvidence['firstFailure'] = null;
  for (const [uniqueId, facts] of nodes) {
    const timeUnixNano = facts.failureTimeUnixNano;
    if (timeUnixNano === null) continue;
    if (first === null || timeUnixNano < first.timeUnixNano) first = { uniqueId, timeUnixNano };
  }
  return first;
}

function earliest(times: readonly (UnixNano | null)[]): UnixNano | null {
  let first: UnixNano | null = null;
  for (const time of times) if (time !== null && (first === null || time < first)) first = time;
  return first;
}

const END_OF_ROOT = /\.(Invocation|Process)$/;
/** After a record log could not be read, or a row not be written, how long until the next try, in milliseconds. */
const RETRY_MS = 5_000;
/** Each time that not all take a run's end the next try comes twice as late, up to this, in milliseconds. */
const MAX_RETRY_MS = 60_000;

/**
 * One run that the tracker follows: it receives records (or reads them from the log), computes verdicts of
 * due invocations and notifies the listeners, one event at a time. Its work never overlaps with itself.
 */
export class OpenRun {
  private state: RunState | null;
  /** Replaces the state of an evicted run while no records have arrived since. */
  private pending: PendingVerdict | null = null;
  /** Number of bytes of the log that the state contains. */
  private loadedBytes = 0;
  /** Bytes of the log that are durable. */
  private knownBytes = 0;
  private lastSeenUnixMs: number;
  private lastArrivalMs: number;
  private firstSeenUnixMs: number;
  /** The row of an earlier process was read, or there is none. */
  private hasRow: boolean;
  private savedState: RunRow['state'] | null = null;
  /** The steps that were known at the last `started` event. */
  private saidSteps = '';
  /** The log's length up to which every listener has processed `finished`. */
  private acceptedBytes: number | null = null;
  private finishedBytes: number | null = null;
  /** The log's length at which an earlier process found every invocation ended: no further silence is awaited. */
  private judgedBytes = 0;
  /** The last reported state of each invocation with a verdict. */
  private readonly reported = new Map<number, string>();
  private isAccepted = true;
  /** Number of failed notifications of its end. */
  private refusalCount = 0;
  /** When its end is notified again, in monotonic milliseconds; `null` if every listener has processed it. */
  private retryMs: number | null = null;
  private working: Promise<void> | null = null;
  private isLoading = false;
  private hasMore = false;
  private hasFailed = false;
  private isStopped = false;
  private readonly timer: EarliestTimer;
  private readonly steps: TraceSteps;

  /** @param isNew whether its log begins now: there is neither a row nor a record of an earlier time. */
  constructor(
    readonly traceId: TraceId,
    private readonly config: RunTrackerConfig,
    private readonly deps: RunTrackerDeps,
    isNew: boolean,
  ) {
    this.state = isNew ? new RunState(config) : null;
    this.hasRow = isNew;
    this.firstSeenUnixMs = deps.clock.nowUnixMs();
    this.lastSeenUnixMs = this.firstSeenUnixMs;
    this.lastArrivalMs = deps.clock.monotonicMs();
    this.timer = new EarliestTimer(deps.clock, () => this.work());
    this.steps = new TraceSteps(traceId, deps.steps);
  }

  get isLoaded(): boolean {
    // Before its first round, an evicted run with a pending verdict has nothing in memory that could be lost.
    return this.known !== null && this.loadedBytes > 0;
  }

  /** Memory that its records' sum takes, in bytes, about. */
  get memoryBytes(): number {
    return this.known?.memoryBytes ?? 0;
  }

  get isWorking(): boolean {
    return this.working !== null;
  }

  /** Returns whether every invocation has its verdict and the whole log was reported. */
  get isSettled(): boolean {
    return this.finishedBytes !== null && this.finishedBytes === this.knownBytes && !this.isWorking;
  }

  /** Returns when it was last active, in monotonic milliseconds. */
  get idleSinceMs(): number {
    return this.lastArrivalMs;
  }

  take(appended: Appended): void {
    this.knownBytes = Math.max(this.knownBytes, appended.lengthBytes);
    this.lastArrivalMs = this.deps.clock.monotonicMs();
    this.lastSeenUnixMs = this.deps.clock.nowUnixMs();
    if (appended.isEmpty) return;
    const isNext = this.state !== null && !this.isLoading && appended.offset === this.loadedBytes;
    if (isNext && this.state !== null) {
      this.state.addPieces(appended.pieces, this.lastArrivalMs);
      this.loadedBytes = appended.lengthBytes;
    }
    if (!isNext || this.savedState !== 'open') this.work();
    else if (appended.pieces.some(hasEndOfRoot)) this.wakeWithin(this.config.quietAfterProcessMs);
    else this.wakeWithin(this.reported.size > 0 ? this.config.quietAfterInvocationMs : this.config.silenceMs);
  }

  /** The log is at least this long, according to the disk. */
  noteLength(bytes: number): void {
    this.knownBytes = Math.max(this.knownBytes, bytes);
  }

  /** The steps of its records have changed. */
  noteSteps(): void {
    this.steps.markStale();
    this.work();
  }

  /** Reads new records, notifies listeners of changes, and sleeps until something is due. */
  work(): Promise<void> {
    this.hasMore = true;
    this.working ??= this.runRounds();
    return this.working;
  }

  /** Returns the current state of the run; `undefined` while its records are not in memory. */
  summary(): RunSummary | undefined {
    if (this.known === null || this.loadedBytes < this.knownBytes) return undefined;
    return this.summarize(this.known).run;
  }

  /** Drops what the records add up to; it is read again from the log when needed. */
  evict(): void {
    this.state = null;
    this.pending = null;
    this.loadedBytes = 0;
  }

  /**
   * Returns what has to be remembered of a run whose row contains everything else: then the run itself can be evicted.
   * `undefined` if it has data that its row does not contain.
   */
  get remainder(): EvictedRun | undefined {
    const isInRow = this.savedState === 'open' && this.reported.size === 0 && !this.hasFailed && !this.isWorking;
    if (!isInRow) return undefined;
    const isWhole = this.loadedBytes === this.knownBytes && this.steps.isEmpty;
    const pending = isWhole ? (this.pending ?? this.state?.pendingVerdict(this.loadedBytes)) : undefined;
    const dueMs = pending?.endMs ?? Math.min(this.timer.dueMs, this.lastArrivalMs + this.config.silenceMs);
    return { dueMs, lastArrivalMs: this.lastArrivalMs, lastSeenUnixMs: this.lastSeenUnixMs, pending };
  }

  /** Restores an evicted run. */
  resume({ lastArrivalMs, lastSeenUnixMs, pending }: EvictedRun): void {
    this.lastArrivalMs = lastArrivalMs;
    this.lastSeenUnixMs = lastSeenUnixMs;
    this.pending = pending ?? null;
  }

  /** Cancels what would wake it. */
  drop(): void {
    this.isStopped = true;
    this.timer.cancel();
  }

  /** Releases everything; resolves when it is no longer active. */
  async abandon(): Promise<void> {
    this.drop();
    await this.working;
  }

  async stop(): Promise<void> {
    this.isStopped = true;
    this.timer.cancel();
    await this.working;
    if (this.known === null || this.isSettled || this.retryMs !== null) return;
    await this.save('open', this.summarize(this.known).run);
  }

  /** Returns the summary of the records: from memory, or from the pending verdict. */
  private get known(): RunState | PendingVerdict | null {
    return this.state ?? this.pending;
  }

  private async runRounds(): Promise<void> {
    // Never within the caller: an append must not wait.
    await Promise.resolve();
    this.timer.cancel();
    try {
      while (this.hasMore && !this.isStopped) {
        this.hasMore = false;
        this.hasFailed = false;
        if (!this.hasRow) await this.readRow();
        if (this.pending !== null) await this.checkPending(this.pending);
        await this.load();
        await this.steps.refresh(this.state?.stepIds ?? []);
        await this.reportChanges();
      }
    } catch (error) {
      this.hasFailed = true;
      this.deps.logger.error({ traceId: this.traceId, error: String(error) }, 'failed to update a run; retrying');
    }
    this.working = null;
    if (!this.isStopped) this.sleep();
  }

  private async readRow(): Promise<void> {
    const row = await this.deps.store.find(this.traceId);
    this.hasRow = true;
    if (row !== undefined) await this.restore(row);
  }

  private async restore(row: RunRow): Promise<void> {
    this.firstSeenUnixMs = row.firstSeenUnixMs;
    this.savedState = row.state;
    this.acceptedBytes = row.parquetBytes;
    if (row.state === 'finished') this.judgedBytes = row.logBytes;
    // Events that listeners failed to process are repeated, and not as a revision.
    if (row.state === 'finished' && row.parquetBytes !== row.logBytes) return;
    // Loaded when the first run is read back: no start has to wait for a schema library.
    const { parseRun } = await import('./parse-run.js');
    const invocations = parseRun(row.summary)?.invocations ?? [];
    this.saidSteps = namesOf(invocations.flatMap(({ step }) => step?.stepId ?? []));
    for (const invocation of invocations) {
      if (invocation.verdict !== null) this.reported.set(invocation.index, formatStep(invocation));
    }
    if (row.state === 'finished') this.finishedBytes = row.logBytes;
  }

  /** Discards a pending verdict that was computed from fewer records. */
  private async checkPending({ logBytes }: PendingVerdict): Promise<void> {
    await this.steps.refresh([]);
    const isRight = logBytes === this.knownBytes && this.steps.isEmpty;
    if (!isRight) this.pending = null;
    this.loadedBytes = isRight ? logBytes : 0;
  }

  /** Reads the log from the end of the state to its durable end, including lines appended meanwhile. */
  private async load(): Promise<void> {
    if (this.known !== null && this.loadedBytes >= this.knownBytes) return;
    this.isLoading = true;
    try {
      const state = this.state ?? new RunState(this.config);
      this.state = state;
      while (this.loadedBytes < this.knownBytes) {
        const toOffset = this.knownBytes;
        const range = { fromOffset: this.loadedBytes, toOffset };
        for await (const records of this.deps.reader.read(this.traceId, range)) {
          state.add(
            records.filter(({ endOffset }) => endOffset <= this.judgedBytes),
            Number.NEGATIVE_INFINITY,
          );
          state.add(
            records.filter(({ endOffset }) => endOffset > this.judgedBytes),
            this.lastArrivalMs,
          );
          this.loadedBytes = records.at(-1)?.endOffset ?? this.loadedBytes;
        }
        // Damaged lines yield nothing: the reader reports them, and the state continues after them.
        this.loadedBytes = Math.max(this.loadedBytes, toOffset);
      }
    } finally {
      this.isLoading = false;
    }
  }

  private async reportChanges(): Promise<void> {
    if (this.known === null || !this.mayHaveChanged(this.known)) return;
    const { run, isOver } = this.summarize(this.known);
    const isOfOthers = this.savedState === 'open' && this.saidSteps !== this.steps.names;
    this.saidSteps = this.steps.names;
    if (this.savedState === null) {
      await this.save('open', run);
      await this.say({ type: 'started', run });
    } else if (isOfOthers && !isOver) {
      await this.save('open', run);
      await this.say({ type: 'started', run, isRepeated: true });
    } else if (!isOver && this.savedState === 'finished') {
      await this.save('open', run);
    }
    for (const invocation of run.invocations) {
      const text = formatStep(invocation);
      if (invocation.verdict === null || this.reported.get(invocation.index) === text) continue;
      const isRevision = this.reported.has(invocation.index);
      this.reported.set(invocation.index, text);
      // The log may not have grown: only its steps have changed.
      this.finishedBytes = null;
      await this.say({ type: 'invocationEnded', run, invocation, isRevision });
    }
    const isLater = this.retryMs !== null && this.deps.clock.monotonicMs() < this.retryMs;
    if (isOver && this.finishedBytes !== run.logBytes && !isLater) await this.finish(run);
  }

  /** Returns whether a summary is worth its time: nothing is reported of a known run while none of it has ended. */
  private mayHaveChanged(known: RunState | PendingVerdict): boolean {
    const { count, overCount } = known.ending(this.deps.clock.monotonicMs(), this.steps);
    return count > 0 && (overCount > 0 || this.savedState !== 'open' || this.saidSteps !== this.steps.names);
  }

  private async finish(run: RunSummary): Promise<void> {
    await this.save('finished', run);
    await this.say({ type: 'finished', run, isRepeated: this.refusalCount > 0 });
    this.judgedBytes = run.logBytes;
    if (!this.isAccepted) {
      this.isAccepted = true;
      this.refusalCount += 1;
      const isLast = this.refusalCount > this.config.maxRetries;
      const delayMs = Math.min(RETRY_MS * 2 ** (this.refusalCount - 1), MAX_RETRY_MS);
      this.retryMs = isLast ? null : this.deps.clock.monotonicMs() + delayMs;
      this.finishedBytes = isLast ? run.logBytes : null;
      return;
    }
    this.refusalCount = 0;
    this.retryMs = null;
    this.finishedBytes = run.logBytes;
    this.acceptedBytes = run.logBytes;
    await this.save('finished', run);
  }

  private async say(event: RunEvent): Promise<void> {
    if (!(await announce(event, this.deps))) this.isAccepted = false;
  }

  private async save(state: RunRow['state'], run: RunSummary): Promise<void> {
    const row: RunRow = {
      traceId: this.traceId,
      firstSeenUnixMs: this.firstSeenUnixMs,
      lastSeenUnixMs: this.lastSeenUnixMs,
      state,
      logBytes: run.logBytes,
      summary: formatRun(run),
      parquetBytes: this.acceptedBytes,
    };
    await this.deps.store.save([row]);
    this.savedState = state;
  }

  private summarize(known: RunState | PendingVerdict): { run: RunSummary; isOver: boolean } {
    const { invocations, nextEndMs } = known.judge(this.deps.clock.monotonicMs(), this.steps);
    const isOver = nextEndMs === null && invocations.length > 0;
    const run: RunSummary = {
      traceId: this.traceId,
      firstSeenUnixMs: this.firstSeenUnixMs,
      lastSeenUnixMs: this.lastSeenUnixMs,
      state: isOver ? 'finished' : 'open',
      logBytes: this.loadedBytes,
      invocations,
    };
    return { run, isOver };
  }

  private sleep(): void {
    if (this.hasFailed) this.wakeWithin(RETRY_MS);
    else if (this.retryMs !== null) this.wakeWithin(this.retryMs - this.deps.clock.monotonicMs());
    else if (this.known !== null) {
      const { count, nextEndMs } = this.known.ending(this.deps.clock.monotonicMs(), this.steps);
      if (nextEndMs !== null) this.wakeWithin(nextEndMs - this.deps.clock.monotonicMs());
      // It became due after the last check: in between, or because a timer fired slightly early.
      else if (count > 0 && this.finishedBytes !== this.loadedBytes) this.wakeWithin(0);
    }
  }

  /** Works again after so long, or sooner when that was asked for already. */
  private wakeWithin(delayMs: number): void {
    if (!this.isStopped && this.working === null) this.timer.within(delayMs);
  }
}

/** Returns whether a command may be over with what was appended. */
function hasEndOfRoot({ items, records = [] }: AppendedPiece): boolean {
  if (items !== undefined) return [...items.chunk.eventTypes].some((eventType) => END_OF_ROOT.test(eventType));
  return records.some(({ eventType }) => END_OF_ROOT.test(eventType));
}

/**
 * Notifies every listener of an event, one after the other; `run.json` of a finished run is written first. Failures are logged.
 * @returns whether the file was written and every listener succeeded.
 */
export async function announce(
  event: RunEvent,
  deps: Pick<RunTrackerDeps, 'listeners' | 'logger' | 'file'>,
): Promise<boolean> {
  let isAccepted = event.type !== 'finished' || (await writeFile(event.run, deps));
  for (const listener of deps.listeners) {
    try {
      await listener.onRunEvent(event);
    } catch (error) {
      isAccepted = false;
      deps.logger.error(
        { traceId: event.run.traceId, event: event.type, error: String(error) },
        'a listener of run changes failed; it is notified again later',
      );
    }
  }
  return isAccepted;
}

async function writeFile(run: RunSummary, { file, logger }: Pick<RunTrackerDeps, 'logger' | 'file'>): Promise<boolean> {
  try {
    await file?.write(run);
    return true;
  } catch (error) {
    logger.error(
      { traceId: run.traceId, error: String(error) },
      'failed to write run.json; retrying; check that the data folder is writable and has space',
    );
    return false;
  }
}

/** What is remembered of a run that has no end and was dropped from memory. */
export interface EvictedRun {
  /** When the run is due again, in monotonic milliseconds. */
  readonly dueMs: number;
  /** When its last record arrived, in monotonic milliseconds. */
  readonly lastArrivalMs: number;
  readonly lastSeenUnixMs: number;
  /** Its verdict if no more records arrive, if known. */
  readonly pending: PendingVerdict | undefined;
}

/** Runs that are remembered, about 150 bytes each; one that comes on top is judged at the next start. */
const MAX_EVICTED = 200_000;
/** Maximum number of pending verdicts; beyond, a run's log is read again at its end. */
const MAX_PENDING_VERDICTS = 2_000;
/** Maximum number of runs that are woken together; the next ones follow when these have their verdicts. */
const MAX_WOKEN = 16;
const NEXT_WAKE_MS = 50;

/**
 * Open runs that were evicted from memory, and when each is due again. A sender of ever new trace ids
 * fills only this list.
 */
export class EvictedRuns {
  private readonly runs = new Map<TraceId, EvictedRun>();
  private readonly timer: EarliestTimer;
  private pendingCount = 0;

  /** @param wake receives each run that is due, which is then no longer evicted */
  constructor(
    private readonly clock: Clock,
    private readonly wake: (traceId: TraceId, evicted: EvictedRun) => void,
  ) {
    this.timer = new EarliestTimer(clock, () => this.wakeDue());
  }

  get count(): number {
    return this.runs.size;
  }

  add(traceId: TraceId, evicted: EvictedRun): void {
    if (this.runs.size >= MAX_EVICTED) return;
    this.delete(traceId);
    const hasRoom = this.pendingCount < MAX_PENDING_VERDICTS;
    const remembered = hasRoom ? evicted : { ...evicted, pending: undefined };
    if (remembered.pending !== undefined) this.pendingCount += 1;
    this.runs.set(traceId, remembered);
    this.wakeAt(evicted.dueMs);
  }

  /** Another process follows the run. */
  delete(traceId: TraceId): void {
    if (this.runs.get(traceId)?.pending !== undefined) this.pendingCount -= 1;
    this.runs.delete(traceId);
  }

  stop(): void {
    this.timer.cancel();
    this.runs.clear();
    this.pendingCount = 0;
  }

  private wakeAt(dueMs: number): void {
    this.timer.within(dueMs - this.clock.monotonicMs());
  }

  private wakeDue(): void {
    const nowMs = this.clock.monotonicMs();
    let wokenCount = 0;
    let nextMs = Number.POSITIVE_INFINITY;
    for (const [traceId, evicted] of this.runs) {
      const { dueMs } = evicted;
      if (dueMs > nowMs) nextMs = Math.min(nextMs, dueMs);
      else if (wokenCount >= MAX_WOKEN) nextMs = Math.min(nextMs, nowMs + NEXT_WAKE_MS);
      else {
        wokenCount += 1;
        this.delete(traceId);
        this.wake(traceId, evicted);
      }
    }
    if (this.runs.size > 0) this.wakeAt(nextMs);
  }
}
