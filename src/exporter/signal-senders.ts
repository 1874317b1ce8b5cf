import type { Signal } from '../record/record-batch.js';
import type { ExportCursor } from '../store/cursor-store.js';
import type { ExportWorkerDeps, ExportWorkerOptions } from './export-worker-options.js';
import type { MappedItem } from './run-mapper.js';
import type { SignalProgress } from './signal-queue.js';
import { ExportLane, LaneSender, type LaneSenderDeps } from './signal-sender.js';

/** OTLP's signals that are exported. */
export const SIGNALS: readonly Signal[] = ['traces', 'logs'];

type RunProgress = Readonly<Record<Signal, SignalProgress>>;

/** The senders of one destination's signals. */
export class LaneSenders {
  private readonly all: readonly LaneSender[];

  constructor(
    readonly traces: LaneSender,
    readonly logs: LaneSender,
    private readonly maxWaitingItems: number,
  ) {
    this.all = [traces, logs];
  }

  /** Whether no signal is sent any more before the next start. */
  get areOff(): boolean {
    return this.all.every(({ lane }) => lane.state === 'off');
  }

  /** Whether there is room for more items: some lane takes them, and none that does is full. */
  get haveRoom(): boolean {
    if (this.areOff) return true;
    const ready = this.all.filter(({ lane }) => lane.state === 'ready');
    return ready.length > 0 && ready.every(({ queue }) => queue.count < this.maxWaitingItems);
  }

  get areResting(): boolean {
    return this.all.every((sender) => sender.isResting);
  }

  get areDrained(): boolean {
    return this.all.every((sender) => sender.isDrained);
  }

  get areSending(): boolean {
    return this.all.some((sender) => sender.isSending);
  }

  get areWaiting(): boolean {
    return this.all.some((sender) => sender.isWaiting);
  }

  /** The last failure in words; `null` after a success. */
  get lastError(): string | null {
    return this.traces.lane.lastError ?? this.logs.lane.lastError;
  }

  /** Sends what may be sent now. @param isAll also requests that are not full. */
  send(isAll: boolean): void {
    for (const sender of this.all) sender.send(isAll);
  }

  /** Takes what the mapper gave. What a lane that has to wait has no room for is passed over. */
  hand(progress: SignalProgress, items: readonly MappedItem[], closingAtBytes?: number): void {
    const { lane, queue } = this[progress.signal];
    if (lane.state === 'off' || progress.isMissed) return;
    queue.hand(progress, items, closingAtBytes);
    if (lane.state === 'waiting' && queue.count > this.maxWaitingItems) queue.passOver(progress);
  }

  begin(progress: RunProgress, cursor: ExportCursor): void {
    this.traces.queue.begin(progress.traces, cursor.tracesOffset);
    this.logs.queue.begin(progress.logs, cursor.logsOffset);
  }

  /** What waits of a run makes room. */
  passOver(progress: RunProgress): void {
    for (const { lane, queue } of this.all) queue.passOver(progress[lane.signal]);
  }

  /** A run's mapper is gone. */
  drop(progress: RunProgress): void {
    for (const { lane, queue } of this.all) queue.drop(progress[lane.signal]);
  }

  /** Nothing of a run is waited for any more. */
  abandon(progress: RunProgress): void {
    for (const { lane, queue } of this.all) queue.abandon(progress[lane.signal]);
  }

  /** What waits for a lane that is off is done with. Whether something waited. */
  clearOff(): boolean {
    return this.all.map(({ lane, queue }) => lane.state === 'off' && queue.clear()).some((isCleared) => isCleared);
  }

  /** Whether a signal that was passed over can be sent now. */
  canCatchUp(progress: RunProgress): boolean {
    return this.all.some(({ lane }) => lane.state === 'ready' && progress[lane.signal].isMissed);
  }

  /** Whether something of a run waits for a lane that takes nothing now. */
  isStuck(progress: RunProgress): boolean {
    return this.all.some(({ lane }) => {
      const { isMissed, waitingCount } = progress[lane.signal];
      return lane.state === 'waiting' && (isMissed || waitingCount > 0);
    });
  }

  /** A run's cursor after what was answered. */
  advance(progress: RunProgress, cursor: ExportCursor): ExportCursor {
    const isOff = { traces: this.traces.lane.state === 'off', logs: this.logs.lane.state === 'off' };
    const traces = isOff.traces ? 0 : progress.traces.offset;
    const logs = isOff.logs ? 0 : progress.logs.offset;
    return {
      ...cursor,
      // What one signal does not take is done with when the other one is.
      tracesOffset: Math.max(cursor.tracesOffset, isOff.traces ? logs : traces),
      logsOffset: Math.max(cursor.logsOffset, isOff.logs ? traces : logs),
    };
  }
}

/** What senders tell the worker. */
export interface LaneSendersHost extends Pick<LaneSenderDeps, 'onAnswered' | 'onGivenBack' | 'onProgress'> {
  /** A lane's wait is over. */
  readonly onReady: () => void;
}

/** The senders of a destination's signals. */
export function createLaneSenders(
  options: ExportWorkerOptions,
  deps: ExportWorkerDeps,
  stop: AbortSignal,
  host: LaneSendersHost,
): LaneSenders {
  const { destination, clock, logger, retryPolicy: policy } = deps;
  const { maxBatchItems } = options;
  const maxInFlight = Math.min(options.maxInFlight, destination.maxInFlight ?? options.maxInFlight);
  const create = (signal: Signal) => {
    const isAsked = destination.signals.includes(signal);
    const lane = new ExportLane(signal, isAsked, destination.name, { clock, logger, policy }, host.onReady);
    const senderDeps = { destination, clock, retryPolicy: deps.requestRetryPolicy, ...host };
    return new LaneSender(lane, { maxBatchItems, maxInFlight }, senderDeps, stop);
  };
  return new LaneSenders(create('traces'), create('logs'), options.maxWaitingItems);
}
