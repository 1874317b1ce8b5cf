import { type AppendedPiece, loggedRecords } from '../../src/log/trace-log.js';
import type { Delivery } from '../../src/record/record-batch.js';
import { formatRecordLine } from '../../src/record/record-line.js';
import { CELL, PageBatch } from '../../src/record/record-page.js';
import { RunState } from '../../src/run/open-run.js';
import { RUN_TRACKER_DEFAULTS } from '../../src/run/run-tracker-config.js';

/** A trace's run model twice: of what the numbers of pages tell, and of the records. */
interface Twins {
  readonly ofPages: RunState;
  readonly ofRecords: RunState;
  readonly seen: Set<string>;
  lengthBytes: number;
}

/** Holds the run model that is made of pages' numbers against the one that is made of records. */
export class RunTwins {
  private readonly byTrace = new Map<string, Twins>();

  /** Adds what a delivery brings, as if it were appended to the record logs; spans that came before are left out. */
  add({ batches }: Delivery): void {
    for (const batch of batches) {
      const twins = this.twinsOf(batch.traceId);
      const ids = batch.records.flatMap((record) => (record.recordType === 'SpanStart' ? [record.spanId] : []));
      if (new Set(ids).size < ids.length || ids.some((id) => twins.seen.has(id))) continue;
      for (const id of ids) twins.seen.add(id);
      const piece = batch instanceof PageBatch ? pageOf(batch, twins.lengthBytes) : recordsOf(batch, twins.lengthBytes);
      twins.lengthBytes += piece.lines.length;
      twins.ofPages.addPieces([piece], 0);
      twins.ofRecords.add(loggedRecords(piece), 0);
    }
  }

  /** What is reported differently; begins anew. */
  difference(): string | undefined {
    const traces = [...this.byTrace.values()];
    this.byTrace.clear();
    for (const { ofPages, ofRecords } of traces) {
      const [found, expected] = [judgement(ofPages), judgement(ofRecords)];
      if (found !== expected) return `by pages   ${found}\nby records ${expected}`;
    }
    return undefined;
  }

  private twinsOf(traceId: string): Twins {
    const known = this.byTrace.get(traceId);
    if (known !== undefined) return known;
    const twins: Twins = {
      ofPages: new RunState(RUN_TRACKER_DEFAULTS),
      ofRecords: new RunState(RUN_TRACKER_DEFAULTS),
      seen: new Set(),
      lengthBytes: 0,
    };
    this.byTrace.set(traceId, twins);
    return twins;
  }
}

function pageOf(batch: PageBatch, offset: number): AppendedPiece {
  const { page, from, to, resource } = batch;
  const lines = page.lines.subarray(page.cell(from, CELL.startLine), page.cell(to - 1, CELL.lineEnd));
  return { resource, offset, lines, rows: batch };
}

function recordsOf({ resource, records }: Delivery['batches'][number], offset: number): AppendedPiece {
  const lines = records.map((record) => Buffer.from(`${formatRecordLine(record)}\n`));
  return { resource, offset, lines: Buffer.concat(lines), records, lineBytes: lines.map(({ length }) => length) };
}

function judgement(state: RunState): string {
  const now = state.judge(0);
  const over = state.judge(Number.MAX_SAFE_INTEGER);
  return JSON.stringify([now, over], (_, value) => (typeof value === 'bigint' ? `${value}n` : value));
}
