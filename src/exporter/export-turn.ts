import type { ReadableLogRecord } from '@opentelemetry/sdk-logs';
import type { ReadableSpan } from '@opentelemetry/sdk-trace-base';
import type { Timer } from '../component/clock.js';
import type { Signal } from '../record/record-batch.js';
import type { RunSummary } from '../run/run-summary.js';
import type { LoggedRecord } from '../sink/record-log.js';
import type { ExportCursor } from '../store/cursor-store.js';
import type { ExportLane } from './export-lane.js';
import type { ExportRun } from './export-run.js';
import type { ExportWorkerDeps } from './export-worker-deps.js';
import type { ExportWorkerOptions } from './export-worker-options.js';
import type { ItemBatch } from './item-batch.js';
import type { MappedItem } from './mapped-item.js';
import { RunReplay } from './run-replay.js';

/**
 * What comes after a run's turn: `again` there is more to do at once, `blocked` a lane has to become ready first, `idle`
 * it waits for records or its end, `done` it was sent to its end.
 */
export type TurnEnd = 'again' | 'blocked' | 'idle' | 'done';

/** What a turn asks of the worker. */
export interface TurnHost {
  opened(run: ExportRun): void;
  close(run: ExportRun): void;
  tookLookAhead(bytes: number): void;
  wakeAfter(run: ExportRun, delayMs: number): Timer;
  isFlushing(): boolean;
}

const SIGNALS = ['traces', 'logs'] as const;

/** One turn of a run: at most one chunk of its record log (about 1 MiB), mapped and sent. */
export class ExportTurn {
  constructor(
    private readonly options: ExportWorkerOptions,
    private readonly deps: ExportWorkerDeps,
    private readonly lanes: Readonly<Record<Signal, ExportLane>>,
    private readonly stop: AbortSignal,
    private readonly host: TurnHost,
  ) {}

  async take(run: ExportRun): Promise<TurnEnd> {
    run.lastTurnMs = this.deps.clock.monotonicMs();
    const cursor = run.cursor ?? (await this.load(run));
    if (cursor === undefined || cursor.finishedAtBytes === run.knownBytes) return 'done';
    const replay = run.replay === undefined || this.canCatchUp(run) ? await this.reopen(run, cursor) : run.replay;
    await this.sendQueued(run);
    if (this.stop.aborted) return 'idle';
    if (run.closingAtBytes !== undefined) return this.endClosing(run, run.closingAtBytes);
    if (this.isBlocked(run)) return 'blocked';
    await this.readOn(run, replay);
    await this.sendQueued(run);
    if (this.stop.aborted) return 'idle';
    return this.end(run, replay);
  }

  private async load(run: ExportRun): Promise<ExportCursor | undefined> {
    const { cursors, destination, reader } = this.deps;
    const { traceId } = run;
    const found = await cursors.find(destination.name, traceId);
    if (found === undefined && !(await cursors.isWanted(destination.name, traceId))) return undefined;
    run.knownBytes = Math.max(run.knownBytes, await reader.lengthBytes(traceId));
    run.cursor = found ?? {
      destination: destination.name,
      traceId,
      tracesOffset: 0,
      logsOffset: 0,
      finishedAtBytes: null,
    };
    return run.cursor;
  }

  /** Whether a signal that was passed over can be sent now. */
  private canCatchUp(run: ExportRun): boolean {
    return [...run.missed].some((signal) => this.lanes[signal].state === 'ready');
  }

  private async reopen(run: ExportRun, cursor: ExportCursor): Promise<RunReplay> {
    if (run.replay !== undefined) this.host.close(run);
    const { createMapper } = this.deps;
    const summary = cursor.finishedAtBytes === null ? undefined : await this.findSummary(run);
    run.missed.clear();
    run.isBehind = true;
    run.replay = new RunReplay(createMapper(), cursor, summary, createMapper);
    this.host.opened(run);
    return run.replay;
  }

  private async findSummary(run: ExportRun): Promise<RunSummary | undefined> {
    return run.finished ?? (await this.deps.runs.find(run.traceId));
  }

  /** Nothing can be sent of what is queued, and there is no other signal for which to read on. */
  private isBlocked(run: ExportRun): boolean {
    if (!run.hasQueued) return false;
    return !SIGNALS.some((signal) => this.lanes[signal].state === 'ready' && run.queues[signal].length === 0);
  }

  private async readOn(run: ExportRun, replay: RunReplay): Promise<void> {
    if (replay.readOffset < run.knownBytes) {
      run.passOverQueued();
      this.route(run, replay.push(await this.nextRecords(run, replay)));
      return;
    }
    run.isBehind = false;
    const summary = await this.endOf(run, replay);
    if (summary !== undefined) {
      run.passOverQueued();
      run.closingAtBytes = summary.logBytes;
      this.route(run, replay.finish(summary), summary.logBytes);
    } else if (replay.heldCount > 0 && this.isQuiet(run)) {
      run.passOverQueued();
      this.route(run, replay.takeHeld());
    }
  }

  private async nextRecords(run: ExportRun, replay: RunReplay): Promise<readonly LoggedRecord[]> {
    const kept = run.takeKept();
    if (kept !== undefined) {
      this.host.tookLookAhead(kept.bytes);
      return kept.records;
    }
    for await (const records of this.deps.reader.read(run.traceId, { fromOffset: replay.readOffset })) {
      if (records.length > 0) return records;
    }
    // No records up to the end: the lines there are damaged, which the reader has reported.
    const length = await this.deps.reader.lengthBytes(run.traceId);
    if (length < run.knownBytes) {
      throw new Error(
        `the record log has ${length} bytes where ${run.knownBytes} were expected; was it cut or removed?`,
      );
    }
    replay.skipTo(length);
    return [];
  }

  /** The summary of a run that is finished just where its log was read to. */
  private async endOf(run: ExportRun, replay: RunReplay): Promise<RunSummary | undefined> {
    if (run.finished === undefined && !run.hasLookedUpSummary) {
      run.hasLookedUpSummary = true;
      const summary = await this.deps.runs.find(run.traceId);
      if (summary?.state === 'finished') run.finished ??= summary;
    }
    return run.finished?.logBytes === replay.readOffset ? run.finished : undefined;
  }

  private isQuiet(run: ExportRun): boolean {
    if (this.host.isFlushing()) return true;
    const leftMs = run.lastAppendMs + this.options.eventHoldMs - this.deps.clock.monotonicMs();
    if (leftMs <= 0) return true;
    run.quietTimer?.cancel();
    run.quietTimer = this.host.wakeAfter(run, leftMs);
    return false;
  }

  private route(run: ExportRun, items: readonly MappedItem[], closingAtBytes?: number): void {
    for (const item of items) {
      const { signal } = item;
      if (this.lanes[signal].state === 'off' || run.missed.has(signal)) continue;
      // A run that is replayed for its other signal has sent the last items of this one already.
      const isSent = closingAtBytes !== undefined && run.doneAtBytes.get(signal) === closingAtBytes;
      if (!isSent) run.queues[signal].push(item);
    }
  }

  private async sendQueued(run: ExportRun): Promise<void> {
    await Promise.all(SIGNALS.map((signal) => this.sendSignal(run, signal)));
  }

  private async sendSignal(run: ExportRun, signal: Signal): Promise<void> {
    const lane = this.lanes[signal];
    const queue = run.queues[signal];
    while (queue.length > 0 && lane.state === 'ready' && !this.stop.aborted) {
      const batch = toBatch(signal, queue.slice(0, this.options.maxBatchItems));
      const { result, itemCount } = await this.deps.destination.send(batch, this.stop);
      if (this.stop.aborted && result.kind === 'retryable') return;
      if (!lane.settle(result, itemCount)) return;
      const sent = queue.splice(0, itemCount);
      await this.advance(run, signal, (sent.at(-1)?.anchorOffset ?? -1) + 1, queue[0]?.anchorOffset);
    }
    if (lane.state === 'off') queue.length = 0;
  }

  private async advance(run: ExportRun, signal: Signal, sentTo: number, next: number | undefined): Promise<void> {
    if (run.cursor === undefined) return;
    run.progressMs ??= this.deps.clock.monotonicMs();
    // Items with the anchor of the next one may still be waiting.
    // A run's last items are anchored at the log's length, where a late record may still come.
    const offset = Math.min(sentTo, next ?? sentTo, run.readOffset);
    // What one signal does not take is done with when the other one is.
    const isOtherOff = this.lanes[signal === 'traces' ? 'logs' : 'traces'].state === 'off';
    const { tracesOffset, logsOffset } = run.cursor;
    run.cursor = {
      ...run.cursor,
      tracesOffset: signal === 'traces' || isOtherOff ? Math.max(tracesOffset, offset) : tracesOffset,
      logsOffset: signal === 'logs' || isOtherOff ? Math.max(logsOffset, offset) : logsOffset,
    };
    await this.deps.cursors.save([run.cursor]);
  }

  private end(run: ExportRun, replay: RunReplay): TurnEnd | Promise<TurnEnd> {
    if (run.closingAtBytes !== undefined) return this.endClosing(run, run.closingAtBytes);
    if (replay.readOffset < run.knownBytes) run.isBehind = true;
    // At the end of what was known one more turn sees whether the run is finished, or its spans are to be let go.
    if (run.isBehind) return this.isBlocked(run) ? 'blocked' : 'again';
    return run.hasQueued || run.missed.size > 0 ? 'blocked' : 'idle';
  }

  /** @param logBytes the run's last items are for a log of this length; meanwhile it may have grown. */
  private async endClosing(run: ExportRun, logBytes: number): Promise<TurnEnd> {
    const { cursor } = run;
    if (cursor === undefined) return 'idle';
    for (const signal of SIGNALS) {
      if (run.queues[signal].length === 0 && !run.missed.has(signal)) run.doneAtBytes.set(signal, logBytes);
    }
    if (run.hasQueued) return 'blocked';
    if (run.missed.size > 0) {
      this.host.close(run);
      run.isBehind = run.knownBytes > logBytes;
      return 'blocked';
    }
    run.cursor = { ...cursor, tracesOffset: logBytes, logsOffset: logBytes, finishedAtBytes: logBytes };
    await this.deps.cursors.save([run.cursor]);
    if (run.knownBytes <= logBytes) return 'done';
    this.host.close(run);
    run.isBehind = true;
    return 'again';
  }
}

function toBatch(signal: Signal, queued: readonly MappedItem[]): ItemBatch {
  if (signal === 'traces') {
    const items: ReadableSpan[] = [];
    for (const item of queued) if (item.signal === 'traces') items.push(item.span);
    return { signal, items };
  }
  const items: ReadableLogRecord[] = [];
  for (const item of queued) if (item.signal === 'logs') items.push(item.log);
  return { signal, items };
}
