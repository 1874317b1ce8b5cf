import type { Timer } from '../component/clock.js';
import type { RunSummary } from '../run/run-summary.js';
import type { ExportCursor } from '../store/cursor-store.js';
import type { ExportRun } from './export-run.js';
import type { ExportWorkerDeps, ExportWorkerOptions } from './export-worker-options.js';
import type { MappedItem } from './run-mapper.js';
import type { FinishedReplays } from './run-replay.js';
import { RunReplay } from './run-replay.js';
import { type LaneSenders, SIGNALS } from './signal-senders.js';

/** What comes after a run's turn: `again` there is more to read at once, `idle` it waits, `done` it is not to be sent, or was. */
export type TurnEnd = 'again' | 'idle' | 'done';

/** What a turn asks of the worker. */
export interface TurnHost {
  opened(run: ExportRun): void;
  close(run: ExportRun): void;
  wakeAfter(run: ExportRun, delayMs: number): Timer;
  isFlushing(): boolean;
}

/** One turn of a run: at most one chunk of its record log (about 1 MiB), mapped and handed to the lanes. */
export class ExportTurn {
  constructor(
    private readonly options: ExportWorkerOptions,
    private readonly deps: ExportWorkerDeps,
    private readonly senders: LaneSenders,
    private readonly finished: FinishedReplays,
    private readonly host: TurnHost,
  ) {}

  async take(run: ExportRun): Promise<TurnEnd> {
    run.lastTurnMs = this.deps.clock.monotonicMs();
    const cursor = (run.isMeasured ? run.cursor : undefined) ?? (await this.load(run));
    if (cursor === undefined || cursor.finishedAtBytes === run.knownBytes) return 'done';
    const isToReopen = run.replay === undefined || this.senders.canCatchUp(run.progress);
    const replay = isToReopen || run.replay === undefined ? await this.reopen(run, cursor) : run.replay;
    // Its last items are under way: whether more came is seen when they are answered.
    if (run.closingAtBytes !== undefined) return 'idle';
    const damagedBefore = replay.damagedCount;
    await this.tellOrigins(run, replay);
    await this.readOn(run, replay);
    this.reportDamage(run, replay.damagedCount - damagedBefore);
    if (replay.readOffset < run.knownBytes && run.closingAtBytes === undefined) run.isBehind = true;
    // At the end of what was known one more turn sees whether the run is finished, or its spans are to be let go.
    return run.isBehind ? 'again' : 'idle';
  }

  /** A run's cursor, from the state; `undefined` where the destination is not to get the run. */
  async load(run: ExportRun): Promise<ExportCursor | undefined> {
    const { cursors, destination, reader } = this.deps;
    const { traceId } = run;
    const found = run.cursor ?? (await cursors.find(destination.name, traceId));
    if (found === undefined && !(await cursors.isWanted(destination.name, traceId))) return undefined;
    run.isMeasured = true;
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

  private async reopen(run: ExportRun, cursor: ExportCursor): Promise<RunReplay> {
    if (run.replay !== undefined) this.host.close(run);
    const { createMapper } = this.deps;
    run.isBehind = true;
    const kept = this.finished.take(run.traceId, cursor);
    const summary = kept !== undefined || cursor.finishedAtBytes === null ? undefined : await this.findSummary(run);
    run.replay = kept ?? new RunReplay(createMapper(), cursor, summary);
    this.senders.begin(run.progress, cursor);
    this.host.opened(run);
    return run.replay;
  }

  private reportDamage({ traceId }: ExportRun, lines: number): void {
    if (lines > 0) this.deps.logger.warn({ traceId, lines }, 'damaged lines of a record log were passed over');
  }

  private async findSummary(run: ExportRun): Promise<RunSummary | undefined> {
    return run.finished ?? (await this.deps.runs.find(run.traceId));
  }

  /** Tells the mapper which runs the trace's commands belong to; they are known a moment after its first records. */
  private async tellOrigins(run: ExportRun, replay: RunReplay): Promise<void> {
    const { origins: catalog } = this.deps;
    if (catalog === undefined || (run.originCount > 0 && !replay.lacksOrigin)) return;
    const origins = await catalog.originsOf(run.traceId);
    if (origins.length === run.originCount) return;
    run.originCount = origins.length;
    replay.setOrigins(origins);
  }

  private async readOn(run: ExportRun, replay: RunReplay): Promise<void> {
    if (replay.readOffset < run.knownBytes) {
      this.route(run, await this.pushLines(run, replay));
      return;
    }
    run.isBehind = false;
    const summary = await this.endOf(run, replay);
    if (summary !== undefined) {
      run.closingAtBytes = summary.logBytes;
      this.route(run, replay.finish(summary), summary.logBytes);
    } else if (replay.heldCount > 0 && this.isQuiet(run)) {
      this.route(run, replay.takeHeld());
    }
  }

  private async pushLines(run: ExportRun, replay: RunReplay): Promise<readonly MappedItem[]> {
    // Not beyond what is known to be durable.
    const { readOffset } = replay;
    const { knownBytes } = run;
    return this.deps.lines.read(run.traceId, readOffset, knownBytes, (lines) => {
      if (lines.length > 0) return replay.pushLines(lines);
      throw new Error(
        `the record log has ${readOffset} bytes where ${knownBytes} were expected; was it cut or removed?`,
      );
    });
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
    for (const signal of SIGNALS) {
      const own = items.filter((item) => item.signal === signal);
      this.senders.hand(run.progress[signal], own, closingAtBytes);
    }
  }
}
