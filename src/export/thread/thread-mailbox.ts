import type { Appended } from '../../log/appended.js';
import type { TraceId } from '../../record/ids.js';
import type { RunEvent } from '../../run/run-event.js';
import type { ExportedRunEvent, ExportThreadCalls } from './messages.js';

/** Messages that the thread has not acknowledged; beyond it, only the latest of each run is kept. */
const MAX_MESSAGES = 1_000;
/** Runs whose latest state is kept; of the one longest ago the thread hears when it is started the next time. */
const MAX_RUNS = 100_000;

/** What is known last of a run. */
interface LatestOfRun {
  readonly lengthBytes: number;
  readonly event: ExportedRunEvent | undefined;
}

/**
 * Posts to the export thread how long the logs of runs are, which it reads itself, and their events. A thread that is behind,
 * or not there, never makes the others wait, nor the memory grow: it gets no single messages any more, but the latest of each
 * run.
 */
export class ThreadMailbox {
  private isConnected = false;
  private messageCount = 0;
  private readonly postponed = new Map<TraceId, LatestOfRun>();
  /** Runs that were heard of and are not finished: what a new thread has to hear of. */
  private readonly open = new Map<TraceId, number>();

  /** @param thread what is told to the thread */
  constructor(private readonly thread: Pick<ExportThreadCalls, 'appended' | 'runEvent' | 'drop'>) {}

  appended({ traceId, lengthBytes }: Pick<Appended, 'traceId' | 'lengthBytes'>): void {
    note(this.open, traceId, lengthBytes);
    if (this.isFull) note(this.postponed, traceId, { lengthBytes, event: this.postponed.get(traceId)?.event });
    else this.postLength(traceId, lengthBytes);
  }

  runEvent(event: RunEvent): void {
    if (event.type === 'invocationEnded') return;
    const { traceId, logBytes } = event.run;
    if (event.type === 'finished') this.open.delete(traceId);
    if (this.isFull) note(this.postponed, traceId, { lengthBytes: logBytes, event });
    else this.postEvent(event);
  }

  /** Nothing of a run is posted any more. */
  drop(traceId: TraceId): void {
    this.open.delete(traceId);
    this.postponed.delete(traceId);
    this.thread.drop(traceId);
  }

  /** The thread has taken in so many messages. */
  acknowledged(messages: number): void {
    this.messageCount -= messages;
    if (this.messageCount > MAX_MESSAGES / 2) return;
    for (const [traceId, { lengthBytes, event }] of this.postponed) {
      if (this.messageCount >= MAX_MESSAGES) return;
      this.postponed.delete(traceId);
      this.postLength(traceId, lengthBytes);
      if (event !== undefined) this.postEvent(event);
    }
  }

  /** A new thread takes over: it knows of runs only what the state knows, and hears of the others. */
  connect(): void {
    this.isConnected = true;
    this.messageCount = 0;
    for (const [traceId, lengthBytes] of this.open) {
      if (!this.postponed.has(traceId)) this.postponed.set(traceId, { lengthBytes, event: undefined });
    }
    this.acknowledged(0);
  }

  /** There is no thread: what comes waits for the next one. */
  disconnect(): void {
    this.isConnected = false;
  }

  private get isFull(): boolean {
    return !this.isConnected || this.messageCount >= MAX_MESSAGES || this.postponed.size > 0;
  }

  private postLength(traceId: TraceId, lengthBytes: number): void {
    this.messageCount += 1;
    this.thread.appended({ traceId, lengthBytes });
  }

  private postEvent(event: ExportedRunEvent): void {
    this.messageCount += 1;
    this.thread.runEvent(event);
  }
}

function note<T>(map: Map<TraceId, T>, traceId: TraceId, value: T): void {
  map.delete(traceId);
  map.set(traceId, value);
  if (map.size <= MAX_RUNS) return;
  const [oldest] = map.keys();
  if (oldest !== undefined) map.delete(oldest);
}
