import { whenAborted } from '../core/clock.js';
import { groupBy, quantile, setLatest } from '../core/lists.js';
import { lengthText } from '../core/text.js';
import type { RecordLogReader } from '../log/record-log.js';
import type { TraceId } from '../record/telemetry-record.js';
import type { CommandDigest } from '../run/measures/command-digest.js';
import { hasSameCommands } from '../run/measures/recovery.js';
import { type ProgressView, type RunningNode, RunProgress } from '../run/measures/run-progress.js';
import { phaseWords } from '../run/words.js';
import { type CatalogRun, type CatalogStep, commandLinesOf, type RunCatalog } from '../storage/run-catalog.js';
import { isFinal, RUN_STATUS } from '../storage/state-tables.js';
import { lastRunsOf } from './earlier-runs.js';
import type { RunMeasures } from './run-measures.js';

// How far runs have come that are under way, for all who show it: pages and `run-bridge top`.

/** A run under way: what its records say, beside what its job's last runs took. All times are milliseconds. */
export interface LiveRun extends Omit<ProgressView, 'running'> {
  readonly running: readonly LiveNode[];
  /** The step that it is at, from 1; 0 before the first one. */
  readonly stepIndex: number;
  /** Artifacts that its command left and that are being uploaded, before the run is over; `null` where none are. */
  readonly uploadingCount: number | null;
  /** Nodes that its command usually has; `null` where nothing is known of earlier ones. */
  readonly usualCount: number | null;
  /** What its phase usually takes. */
  readonly usualPhaseMs: number | null;
  /** What all of the run usually takes. */
  readonly usualMs: number | null;
}

/** A node that is worked on, and how long that usually takes; `null` where it is not known. */
export interface LiveNode extends RunningNode {
  readonly usualMs: number | null;
}

/** What runs under way are read from. */
export interface LiveRunsDeps {
  readonly catalog: Pick<RunCatalog, 'listRuns' | 'stepsOf'>;
  readonly measures: Pick<RunMeasures, 'digestsOf'>;
  readonly reader: Pick<RecordLogReader, 'read'>;
  /** How long a record log is read for one answer, in milliseconds; the rest is read behind it, for the next. Default: to its end. */
  readonly maxReadMs?: number;
}

/** Runs of which what was read is kept: those that were asked for last. */
const MAX_RUNS = 50;
/** Earlier runs that say what is usual. */
const MAX_EARLIER = 5;
/** How long what is usual is taken for that, in milliseconds, and that nothing is: earlier runs may be measured meanwhile. */
const USUAL_MS = 60_000;
const UNKNOWN_MS = 5_000;

/** Reads how far runs have come; of each record log, what has come since the last time. */
export class LiveRuns {
  private readonly logs = new Map<TraceId, LogProgress>();
  private readonly usual = new Map<string, { readonly found: Promise<readonly EarlierStep[]>; untilUnixMs: number }>();

  constructor(private readonly deps: LiveRunsDeps) {}

  /**
   * Returns how far those of the runs have come that are under way, by their ids.
   * @throws StoreError; errors of the reader
   */
  async of(runs: readonly CatalogRun[], nowUnixMs: number): Promise<ReadonlyMap<number, LiveRun>> {
    const underWay = runs.filter(({ status }) => !isFinal(status));
    const [first] = underWay;
    if (first === undefined) return new Map();
    const ids = underWay.map(({ id }) => id);
    const steps = groupBy(await this.deps.catalog.stepsOf(first.accountId, ids), ({ runId }) => runId);
    const found = new Map<number, LiveRun>();
    for (const run of underWay) found.set(run.id, await this.live(run, steps.get(run.id) ?? [], nowUnixMs));
    return found;
  }

  private async live(run: CatalogRun, steps: readonly CatalogStep[], nowUnixMs: number): Promise<LiveRun> {
    const step = steps.find(({ status }) => !isFinal(status)) ?? steps.at(-1);
    const traceId = step?.invocations.at(-1)?.traceId;
    const progress = traceId === undefined ? new RunProgress() : await this.read(traceId);
    const view = progress.view(nowUnixMs);
    const earlier = step === undefined ? [] : await this.earlierOf(run, step, nowUnixMs);
    const usualOf = (numberOf: (one: EarlierStep) => number | undefined) => {
      const known = earlier.flatMap((one) => numberOf(one) ?? []).filter((one) => !Number.isNaN(one));
      return quantile(known, 0.5) ?? null;
    };
    const uploadingCount = step?.artifacts?.state === 'uploading' ? step.artifacts.expectedCount : null;
    const leftMs = () =>
      step === undefined || earlier.length === 0
        ? view.leftMs
        : usualOf((one) => leftLike(one, progress, view, nowUnixMs - (step.startedUnixMs ?? step.createdUnixMs)));
    return {
      ...view,
      stepIndex: step?.index ?? 0,
      uploadingCount,
      running: view.running.map((node) => ({ ...node, usualMs: usualOf(({ tookMs }) => tookMs.get(node.uniqueId)) })),
      usualCount: usualOf(({ nodeCount }) => nodeCount),
      usualPhaseMs: usualOf(({ phaseMs }) => phaseMs[view.phase ?? '']),
      usualMs: usualOf(({ runMs }) => runMs),
      leftMs: uploadingCount === null ? leftMs() : null,
    };
  }

  private async read(traceId: TraceId): Promise<RunProgress> {
    const { reader, maxReadMs } = this.deps;
    const log = this.logs.get(traceId) ?? new LogProgress(traceId, reader);
    setLatest(this.logs, traceId, log, MAX_RUNS);
    const read = log.upToNow();
    await (maxReadMs === undefined ? read : Promise.race([read, whenAborted(AbortSignal.timeout(maxReadMs))]));
    return log.progress;
  }

  private async earlierOf(run: CatalogRun, step: CatalogStep, nowUnixMs: number): Promise<readonly EarlierStep[]> {
    const key = `${run.id} ${step.index}`;
    const known = this.usual.get(key);
    if (known !== undefined && nowUnixMs < known.untilUnixMs) return await known.found;
    const found = earlierSteps(run, step, this.deps);
    const kept = { found, untilUnixMs: nowUnixMs + USUAL_MS };
    setLatest(this.usual, key, kept, MAX_RUNS);
    try {
      if ((await found).length === 0) kept.untilUnixMs = nowUnixMs + UNKNOWN_MS;
    } catch (error) {
      this.usual.delete(key);
      throw error;
    }
    return await found;
  }
}

/** What was read of a record log. */
class LogProgress {
  readonly progress = new RunProgress();
  private offset = 0;
  private turn: Promise<void> = Promise.resolve();

  constructor(
    private readonly traceId: TraceId,
    private readonly reader: LiveRunsDeps['reader'],
  ) {}

  /** Resolves when all that the log has now is read. @throws errors of the reader */
  upToNow(): Promise<void> {
    this.turn = this.turn.catch(() => undefined).then(() => this.readOn());
    // Nobody may wait for it to the end; who asks next is told.
    this.turn.catch(() => undefined);
    return this.turn;
  }

  private async readOn(): Promise<void> {
    for await (const records of this.reader.read(this.traceId, { fromOffset: this.offset })) {
      this.progress.add(records);
      this.offset = records.at(-1)?.endOffset ?? this.offset;
    }
  }
}

/** A step as an earlier run had it. */
interface EarlierStep {
  readonly runMs: number;
  readonly stepMs: number;
  /** What the steps behind it took. */
  readonly laterMs: number;
  readonly nodeCount: number;
  readonly phaseMs: Readonly<Record<string, number>>;
  /** By unique ids: what nodes took, and what of the command's length fell to each. */
  readonly tookMs: ReadonlyMap<string, number>;
  readonly sharesMs: ReadonlyMap<string, number>;
}

/**
 * Finds the step in the job's last runs that had it. Where some worked on nodes, those that ended before are left out; of the rest
 * those that succeeded are taken if there are any.
 */
async function earlierSteps(run: CatalogRun, step: CatalogStep, deps: LiveRunsDeps): Promise<readonly EarlierStep[]> {
  const { catalog, measures } = deps;
  const earlier = (await lastRunsOf([run], deps))(run).filter(({ id }) => id !== run.id);
  const ids = earlier.map(({ id }) => id);
  const steps = groupBy(await catalog.stepsOf(run.accountId, ids), ({ runId }) => runId);
  const found: (EarlierStep & { readonly isGood: boolean })[] = [];
  for (const one of earlier) {
    const theirs = steps.get(one.id) ?? [];
    const same = theirs.find(({ index }) => index === step.index);
    if (same === undefined || isOtherCommand(step, same)) continue;
    const [digest] = (await measures.digestsOf([same]))?.slice(-1) ?? [];
    if (digest === undefined) continue;
    const later = theirs.filter(({ index }) => index > same.index);
    found.push({
      isGood: one.status === RUN_STATUS.success,
      runMs: lengthMs(one),
      stepMs: lengthMs(same),
      laterMs: later.reduce((sum, other) => sum + lengthMs(other), 0),
      nodeCount: Object.values(digest.counts).reduce((sum, count) => sum + count, 0),
      phaseMs: digest.phaseMs,
      tookMs: byNode(digest, 'tookMs'),
      sharesMs: byNode(digest, 'sharesMs'),
    });
  }
  const worked = found.filter(({ nodeCount }) => nodeCount > 0);
  const all = worked.length > 0 ? worked : found;
  const good = all.filter(({ isGood }) => isGood);
  return (good.length > 0 ? good : all).slice(0, MAX_EARLIER);
}

/** Whether a step has another command than an earlier one had. Over OTLP, the command is not known before it ends. */
function isOtherCommand(step: CatalogStep, earlier: CatalogStep): boolean {
  const commandLines = commandLinesOf([step]);
  return (
    commandLines.join('') !== '' && !hasSameCommands({ commandLines }, { commandLines: commandLinesOf([earlier]) })
  );
}

function lengthMs({ startedUnixMs, createdUnixMs, finishedUnixMs }: CatalogRun | CatalogStep): number {
  return Math.max(0, (finishedUnixMs ?? 0) - (startedUnixMs ?? createdUnixMs));
}

function byNode({ work }: CommandDigest, what: 'tookMs' | 'sharesMs'): ReadonlyMap<string, number> {
  return new Map(work.uniqueIds.map((id, at) => [id, work[what][at] ?? Number.NaN]));
}

/** The share of an earlier step's nodes that is done before the pace of the present ones says anything. */
const MIN_SHARE = 0.2;

/** How long a run goes on if it does as an earlier one did: at its own pace, once enough nodes are done. */
function leftLike(earlier: EarlierStep, progress: RunProgress, view: ProgressView, elapsedMs: number): number {
  const { sharesMs, stepMs, laterMs } = earlier;
  if (view.doneCount === 0) return Math.max(0, stepMs - elapsedMs) + laterMs;
  let doneMs = 0;
  let openMs = 0;
  for (const [id, share] of sharesMs) {
    if (progress.isDone(id)) doneMs += share;
    else openMs += share;
  }
  const newCount = Math.max(0, (view.totalCount ?? 0) - earlier.nodeCount);
  if (sharesMs.size > 0) openMs += (newCount * (doneMs + openMs)) / sharesMs.size;
  const isTelling = view.nodesForMs !== null && doneMs > MIN_SHARE * (doneMs + openMs);
  const pace = isTelling ? (view.nodesForMs ?? 0) / doneMs : 1;
  return openMs * pace + laterMs;
}

/** Nodes that are named in a line. */
const MAX_NAMED = 2;

/** How far a run has come, in a line: `214 of 600 nodes, 2 failed, running mart_12 for 41 s (usually 12 s), about 3 min left`. */
export function liveLine(live: LiveRun): string {
  const { failedCount, running, lastEnded, hasStarts, leftMs, uploadingCount } = live;
  const named = running
    .slice(0, MAX_NAMED)
    .map(({ name, forMs, usualMs }) => `${name} for ${withUsual(forMs, usualMs)}`);
  const more = running.length > named.length ? ` and ${running.length - named.length} more` : '';
  return [
    positionText(live),
    ...(failedCount > 0 ? [`${failedCount} failed`] : []),
    ...(named.length > 0 ? [`running ${named.join(' and ')}${more}`] : []),
    ...(uploadingCount === null ? [] : [uploadText(uploadingCount)]),
    ...(lastEnded !== null && !hasStarts ? [`last ended ${lastEnded.name} ${roughly(lastEnded.agoMs)} ago`] : []),
    ...(leftMs === null || leftMs === 0 ? [] : [`about ${roughly(leftMs)} left`]),
  ].join(', ');
}

/** `214 of 600 nodes`; where the engine has not said how many there are, `214 of usually 600 nodes` or `214 nodes so far`; before the first node, the phase. */
export function positionText(live: LiveRun): string {
  const { stepIndex, doneCount, totalCount, usualCount, parsedCount } = live;
  const step = stepIndex > 1 ? `step ${stepIndex}: ` : '';
  const count = (number: number, noun: string) => `${number.toLocaleString('en')} ${noun}${number === 1 ? '' : 's'}`;
  const done = doneCount.toLocaleString('en');
  if (totalCount !== null) return `${step}${done} of ${count(totalCount, 'node')}`;
  if (doneCount > 0 && usualCount !== null) return `${step}${done} of usually ${count(usualCount, 'node')}`;
  if (doneCount > 0) return `${step}${count(doneCount, 'node')} so far`;
  return `${step}${phaseText(live)}${parsedCount > 0 ? `, ${count(parsedCount, 'file')} so far` : ''}`;
}

/** `uploading 8,286 artifacts`: what a run waits for when its command has ended. */
export function uploadText(count: number): string {
  return `uploading ${count.toLocaleString('en')} artifact${count === 1 ? '' : 's'}`;
}

/** `parse for 41 s (usually 85 s)`, in the engine's words; `no telemetry yet` where nothing tells of a phase. */
export function phaseText({ phase, phaseForMs, usualPhaseMs }: LiveRun): string {
  if (phase === null) return 'no telemetry yet';
  const word = phaseWords(phase);
  return phaseForMs === null ? word : `${word} for ${withUsual(phaseForMs, usualPhaseMs)}`;
}

/** `41 s (usually 12 s)` */
export function withUsual(ms: number, usualMs: number | null): string {
  return usualMs === null ? roughly(ms) : `${roughly(ms)} (usually ${roughly(usualMs)})`;
}

/** Whole seconds, and whole minutes from two on. */
export function roughly(ms: number): string {
  const seconds = Math.max(1, Math.round(ms / 1_000));
  if (seconds < 120) return `${seconds} s`;
  return seconds < 7_200 ? `${Math.round(seconds / 60)} min` : lengthText(ms);
}
