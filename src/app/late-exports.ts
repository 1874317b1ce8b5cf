import type { Clock } from '../component/clock.js';
import type { Logger } from '../component/logger.js';
import { pause } from '../component/pause.js';
import { reasonOf } from '../component/reason-of.js';
import { whenAborted } from '../component/when-aborted.js';
import type { RetryPolicy } from '../delivery/retry-policy.js';
import type { Exports, ExportThread, ExportThreadSources } from '../export-thread/export-thread.js';
import type { DestinationStatus } from '../exporter/destination.js';
import type { TraceId } from '../record/ids.js';
import type { ForeignBatch } from '../record/record-batch.js';
import type { RunEvent } from '../run/run-event.js';
import { Appended } from '../sink/appended.js';
import type { CursorStore } from '../store/cursor-store.js';

/** What late exports work with. */
export interface LateExportsDeps {
  /** Starts the thread. @throws when that fails; it is tried again. */
  open(): Promise<LateThread>;
  readonly cursors: Pick<CursorStore, 'register' | 'saveForeign'>;
  readonly clock: Clock;
  readonly logger: Logger;
  /** How long to wait before the thread is started again. */
  readonly retryPolicy: RetryPolicy;
}

/** What is used of the thread that exports. */
export type LateThread = Exports & Pick<ExportThread, 'connect' | 'close' | 'rename'>;

/** The last news of a run that came before the thread. */
interface News {
  readonly lengthBytes: number;
  readonly event: RunEvent | undefined;
}

/** Runs whose news is kept; of the one longest ago the thread hears when it is started the next time. */
const MAX_RUNS = 100_000;

/**
 * Exports whose thread is started when the program is about to be ready, and not waited for: loading its code takes longer
 * than all the rest of a start. Until it is there, the last news of each run is kept for it; the records are on disk.
 * Destinations count as registered from the start, so that each gets what comes meanwhile.
 */
export class LateExports implements LateThread {
  readonly name = 'exports';
  private thread: LateThread | undefined;
  private sources: ExportThreadSources | undefined;
  private readonly missed = new Map<TraceId, News>();
  private opening: Promise<void> = Promise.resolve();
  private readonly stop = new AbortController();

  constructor(
    readonly destinations: Exports['destinations'],
    private readonly deps: LateExportsDeps,
  ) {}

  connect(sources: ExportThreadSources): void {
    this.sources = sources;
  }

  async start(): Promise<void> {
    for (const [name] of this.destinations) await this.register(name);
    this.opening = this.openUntilStopped();
  }

  async close(): Promise<void> {
    this.stop.abort();
    await this.opening;
    await this.thread?.close();
  }

  onAppended(appended: Appended): void {
    if (this.thread !== undefined) this.thread.onAppended(appended);
    else this.note(appended.traceId, appended.lengthBytes);
  }

  drop(traceId: TraceId): void {
    this.missed.delete(traceId);
    this.thread?.drop(traceId);
  }

  collectGarbage(): void {
    this.thread?.collectGarbage();
  }

  /** Where several processes share the database: this one goes on under another id. */
  rename(processId: string): void {
    this.thread?.rename(processId);
  }

  onForeign(batches: readonly ForeignBatch[]): void {
    this.thread?.onForeign(batches);
  }

  async onRunEvent(event: RunEvent): Promise<void> {
    if (this.thread !== undefined) await this.thread.onRunEvent(event);
    else this.note(event.run.traceId, event.run.logBytes, event);
  }

  statuses(): readonly DestinationStatus[] {
    return this.thread?.statuses() ?? [];
  }

  async flush(deadline: AbortSignal): Promise<boolean> {
    await this.openedBy(deadline);
    return (await this.thread?.flush(deadline)) ?? false;
  }

  /** A thread that is just being started is waited for: it sends what there is, as at any other end. */
  async shutdown(deadline: AbortSignal): Promise<void> {
    this.stop.abort();
    await this.openedBy(deadline);
    await this.thread?.shutdown(deadline);
  }

  private async register(name: string): Promise<void> {
    const { clock, cursors } = this.deps;
    const nowUnixMs = clock.nowUnixMs();
    if ((await cursors.register(name, nowUnixMs)) !== nowUnixMs) return;
    // What other services sent before is not for a destination that is new.
    const end = await this.sources?.foreign.end();
    if (end !== undefined) await cursors.saveForeign(name, end);
  }

  private async openUntilStopped(): Promise<void> {
    const { clock, logger, retryPolicy } = this.deps;
    for (let attempt = 1; !this.stop.signal.aborted; attempt += 1) {
      try {
        await this.begin();
        return;
      } catch (error) {
        const delayMs = retryPolicy.delayMs(attempt, null);
        logger.error(
          { error: reasonOf(error), delayMs },
          'the thread that exports could not be started; it is tried again, and nothing is lost meanwhile',
        );
        await pause(clock, delayMs, this.stop.signal);
      }
    }
  }

  private async begin(): Promise<void> {
    const thread = await this.deps.open();
    if (this.sources !== undefined) thread.connect(this.sources);
    await thread.start();
    this.handOver(thread);
  }

  /** From here on the thread hears of everything itself. */
  private handOver(thread: LateThread): void {
    this.thread = thread;
    for (const [traceId, { lengthBytes, event }] of this.missed) {
      // Without the lines, which it reads from the log.
      thread.onAppended(new Appended(traceId, [], lengthBytes));
      if (event !== undefined) void thread.onRunEvent(event);
    }
    this.missed.clear();
    thread.onForeign([]);
  }

  private note(traceId: TraceId, lengthBytes: number, event = this.missed.get(traceId)?.event): void {
    this.missed.delete(traceId);
    this.missed.set(traceId, { lengthBytes, event });
    if (this.missed.size <= MAX_RUNS) return;
    const [oldest] = this.missed.keys();
    if (oldest !== undefined) this.missed.delete(oldest);
  }

  private async openedBy(deadline: AbortSignal): Promise<void> {
    await Promise.race([this.opening, whenAborted(deadline)]);
  }
}
