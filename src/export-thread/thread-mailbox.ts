import type { TraceId } from '../record/ids.js';
import type { RunEvent } from '../run/run-event.js';
import type { Appended } from '../sink/appended.js';
import type { AppendedLines, RunMessage, ToThread } from './messages.js';

/** Lines that the thread was given and has not taken in, in bytes; beyond it, it reads them from the log. */
const MAX_LINE_BYTES = 8 * 1024 * 1024;
/** Messages that it has not taken in; beyond it, only the last news of each run is kept. */
const MAX_MESSAGES = 1_000;
/** Runs whose last news is kept; of the one longest ago the thread hears when it is started the next time. */
const MAX_RUNS = 100_000;

/** The last news of a run. */
interface News {
  readonly lengthBytes: number;
  readonly event: RunMessage['event'] | undefined;
}

/**
 * What the export thread is to hear of runs. A thread that is behind never makes the others wait, nor the memory grow: it
 * gets no lines any more, then no single messages, but the last news of each run.
 */
export class ThreadMailbox {
  private messageCount = 0;
  private lineBytes = 0;
  private readonly postponed = new Map<TraceId, News>();
  /** Runs that were heard of and are not finished: what a new thread has to be told. */
  private readonly open = new Map<TraceId, number>();

  /** @param post hands a message to the thread; `transfer` are the buffers that go over to it. */
  constructor(private readonly post: (message: ToThread, transfer: readonly ArrayBuffer[]) => void) {}

  appended(appended: Appended): void {
    const { traceId, offset, lengthBytes } = appended;
    note(this.open, traceId, lengthBytes);
    if (this.isFull) {
      note(this.postponed, traceId, { lengthBytes, event: this.postponed.get(traceId)?.event });
      return;
    }
    const bytes = lengthBytes - offset;
    const isLent = this.lineBytes + bytes <= MAX_LINE_BYTES;
    const pieces = isLent ? appended.pieces.map(copyOf) : [];
    if (isLent) this.lineBytes += bytes;
    this.messageCount += 1;
    const message = { type: 'appended', traceId, offset, lengthBytes, pieces } as const;
    this.post(
      message,
      pieces.map(({ lines }) => lines.buffer),
    );
  }

  told(event: RunEvent): void {
    if (event.type === 'invocationEnded') return;
    const { traceId, logBytes } = event.run;
    if (event.type === 'finished') this.open.delete(traceId);
    if (this.isFull) note(this.postponed, traceId, { lengthBytes: logBytes, event });
    else this.postEvent(event);
  }

  /** The thread has taken in some of it. */
  took(messages: number, bytes: number): void {
    this.messageCount -= messages;
    this.lineBytes -= bytes;
    if (this.messageCount > MAX_MESSAGES / 2) return;
    for (const [traceId, { lengthBytes, event }] of this.postponed) {
      if (this.messageCount >= MAX_MESSAGES) return;
      this.postponed.delete(traceId);
      this.postLength(traceId, lengthBytes);
      if (event !== undefined) this.postEvent(event);
    }
  }

  /** A new thread takes over: it knows of runs only what the state knows, and hears of the others. */
  renew(): void {
    this.messageCount = 0;
    this.lineBytes = 0;
    for (const [traceId, lengthBytes] of this.open) {
      if (!this.postponed.has(traceId)) this.postponed.set(traceId, { lengthBytes, event: undefined });
    }
    this.took(0, 0);
  }

  private get isFull(): boolean {
    return this.messageCount >= MAX_MESSAGES || this.postponed.size > 0;
  }

  private postLength(traceId: TraceId, lengthBytes: number): void {
    this.messageCount += 1;
    this.post({ type: 'appended', traceId, offset: lengthBytes, lengthBytes, pieces: [] }, []);
  }

  private postEvent(event: RunMessage['event']): void {
    this.messageCount += 1;
    this.post({ type: 'run', event }, []);
  }
}

/** The lines are lent: the thread gets its own. */
function copyOf({
  resource,
  offset,
  lines,
}: AppendedLines): AppendedLines & { readonly lines: Uint8Array<ArrayBuffer> } {
  return { resource, offset, lines: new Uint8Array(lines) };
}

function note<T>(map: Map<TraceId, T>, traceId: TraceId, value: T): void {
  map.delete(traceId);
  map.set(traceId, value);
  if (map.size <= MAX_RUNS) return;
  const [oldest] = map.keys();
  if (oldest !== undefined) map.delete(oldest);
}
