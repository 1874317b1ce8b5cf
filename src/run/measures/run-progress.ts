import type { LoggedRecord } from '../../log/record-log.js';
import type { SpanEnd, SpanId, SpanStart, UnixNano } from '../../record/telemetry-record.js';
import { enumValue, eventName, isSelected, nodeVerdictOf } from '../node-outcome.js';

/** How far a run that is under way has come. */
export interface ProgressView {
  /** Nodes that it was asked for and that are done. */
  readonly doneCount: number;
  /** All that it was asked for; `null` where the engine has not said it, as over OTLP, which tells of phases when they are over. */
  readonly totalCount: number | null;
  /** Nodes with an error, and tests that failed. */
  readonly failedCount: number;
  /** What runs, the longest first; empty over OTLP, too. */
  readonly running: readonly RunningNode[];
  /** About how long it goes on, in milliseconds, at the pace so far; `null` where that says nothing yet. */
  readonly leftMs: number | null;
}

/** A node that is worked on. */
export interface RunningNode {
  readonly name: string;
  readonly forMs: number;
}

/** Nodes that are done before their pace says anything. */
const MIN_DONE = 5;
/** Nodes that are remembered as running; a run has as many as threads. */
const MAX_RUNNING = 10_000;

/** Counts what the records of a run say of its progress, as they come. */
export class RunProgress {
  /** Nodes that are done, by their unique ids. */
  private readonly done = new Set<string>();
  private readonly failed = new Set<string>();
  private readonly running = new Map<SpanId, { readonly name: string; readonly since: UnixNano }>();
  /** By the phase's span: a run may have several commands. */
  private readonly totals = new Map<SpanId, number>();
  private firstStart: UnixNano | null = null;

  add(records: readonly LoggedRecord[]): void {
    for (const { record } of records) {
      if (record.recordType === 'LogRecord') continue;
      switch (eventName(record.eventType)) {
        case 'PhaseExecuted':
          this.addPhase(record);
          break;
        case 'NodeEvaluated':
          this.addEvaluated(record);
          break;
        case 'NodeProcessed':
          if (record.recordType === 'SpanEnd') this.addProcessed(record);
          break;
        default:
      }
    }
  }

  /** @param nowUnixMs wall-clock time, by which the engine's times are read */
  view(nowUnixMs: number): ProgressView {
    const since = (start: UnixNano) => Math.max(0, nowUnixMs - Number(start / 1_000_000n));
    const sum = [...this.totals.values()].reduce((total, count) => total + count, 0);
    const totalCount = sum === 0 ? null : Math.max(sum, this.done.size);
    const running = [...this.running.values()].map(({ name, since: start }) => ({ name, forMs: since(start) }));
    return {
      doneCount: this.done.size,
      totalCount,
      failedCount: this.failed.size,
      running: running.sort((a, b) => b.forMs - a.forMs),
      leftMs: this.leftMs(totalCount, this.firstStart === null ? 0 : since(this.firstStart)),
    };
  }

  private leftMs(totalCount: number | null, elapsedMs: number): number | null {
    const doneCount = this.done.size;
    if (totalCount === null || doneCount < MIN_DONE || elapsedMs === 0) return null;
    return ((totalCount - doneCount) * elapsedMs) / doneCount;
  }

  private addPhase({ attributes, spanId }: SpanStart | SpanEnd): void {
    if (phaseOf(attributes.text('phase')) !== 'RUN') return;
    const count = attributes.integer('node_count_total');
    if (count !== undefined) this.totals.set(spanId, count);
  }

  private addEvaluated(record: SpanStart | SpanEnd): void {
    const { attributes, spanId, startTimeUnixNano } = record;
    if (phaseOf(attributes.text('phase')) !== 'RUN') return;
    if (this.firstStart === null || startTimeUnixNano < this.firstStart) this.firstStart = startTimeUnixNano;
    if (record.recordType === 'SpanEnd') this.running.delete(spanId);
    else if (this.running.size < MAX_RUNNING) {
      const name = attributes.text('name') ?? attributes.text('unique_id') ?? record.spanName;
      this.running.set(spanId, { name, since: startTimeUnixNano });
    }
  }

  private addProcessed(record: SpanEnd): void {
    const uniqueId = record.attributes.text('unique_id');
    const verdict = nodeVerdictOf(record, 'none');
    const isBad = verdict === 'error' || verdict === 'failed';
    // One that was not asked for is counted where it failed.
    if (uniqueId === undefined || !(isSelected(record) || isBad)) return;
    this.done.add(uniqueId);
    if (isBad) this.failed.add(uniqueId);
  }
}

function phaseOf(text: string | undefined): string | undefined {
  return enumValue(text, 'EXECUTION_PHASE_');
}
