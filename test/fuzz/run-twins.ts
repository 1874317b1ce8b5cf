import { type AppendedPiece, loggedRecords } from '../../src/log/appended.js';
import { CellBatch, FIELD } from '../../src/otlp/wire/item-chunk.js';
import type { Delivery } from '../../src/record/record-batch.js';
import { formatRecordLine } from '../../src/record/record-line.js';
import { RunState } from '../../src/run/open-run.js';
import { RUN_TRACKER_DEFAULTS } from '../../src/run/run-tracker-config.js';

/** A trace's run model twice: of what cells tell, and of the records. */
interface Twins {
  readonly ofCells: RunState;
  readonly ofRecords: RunState;
  readonly seen: Set<string>;
  lengthBytes: number;
}

/** Holds the run model that is made of cells against the one that is made of records. */
export class RunTwins {
  private readonly byTrace = new Map<string, Twins>();

  /** Adds what a delivery brings, as if it were appended to the record logs; spans that came before are left out. */
  add({ batches }: Delivery): void {
    for (const batch of batches) {
      const twins = this.twinsOf(batch.traceId);
      const ids = batch.records.flatMap((record) => (record.recordType === 'SpanStart' ? [record.spanId] : []));
      if (new Set(ids).size < ids.length || ids.some((id) => twins.seen.has(id))) continue;
      for (const id of ids) twins.seen.add(id);
      const piece =
        batch instanceof CellBatch ? itemsOf(batch, twins.lengthBytes) : recordsOf(batch, twins.lengthBytes);
      twins.lengthBytes += piece.lines.length;
      twins.ofCells.addPieces([piece], 0);
      twins.ofRecords.add(loggedRecords(piece), 0);
    }
  }

  /** What is reported differently; begins anew. */
  difference(): string | undefined {
    const traces = [...this.byTrace.values()];
    this.byTrace.clear();
    for (const { ofCells, ofRecords } of traces) {
      const [found, expected] = [judgement(ofCells), judgement(ofRecords)];
      if (found !== expected) return `by cells   ${found}\nby records ${expected}`;
    }
    return undefined;
  }

  private twinsOf(traceId: string): Twins {
    const known = this.byTrace.get(traceId);
    if (known !== undefined) return known;
    const twins: Twins = {
      ofCells: new RunState(RUN_TRACKER_DEFAULTS),
      ofRecords: new RunState(RUN_TRACKER_DEFAULTS),
      seen: new Set(),
      lengthBytes: 0,
    };
    this.byTrace.set(traceId, twins);
    return twins;
  }
}

function itemsOf(batch: CellBatch, offset: number): AppendedPiece {
  const { chunk, from, to, resource } = batch;
  const lines = chunk.lines.subarray(chunk.field(from, FIELD.startLine), chunk.field(to - 1, FIELD.lineEnd));
  return { resource, offset, lines, items: batch };
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
