import { afterEach, describe, expect, it, vi } from 'vitest';
import { CellWriter } from '../../../src/export/mapping/cell-writer.js';
import { LogWriter, SpanWriter } from '../../../src/export/mapping/plain-writer.js';

import { FreshRecords } from '../../../src/log/appended.js';
import { CellBatch, ItemChunk } from '../../../src/otlp/wire/item-chunk.js';

import { CellRows } from '../../../src/parquet/cell-rows.js';

import { LineRows } from '../../../src/parquet/line-rows.js';
import { PlainRows } from '../../../src/parquet/plain-rows.js';
import { RowGroupColumns } from '../../../src/parquet/row-group.js';
import { formatRecordLine } from '../../../src/record/record-line.js';
import { RunState } from '../../../src/run/open-run.js';
import { sampleDeliveries } from '../../fake/sample-deliveries.js';
import { sampleLines } from '../../fake/sample-run.js';
import { LARGE_SAMPLES } from '../../tool/large-samples.js';
import { mapLines } from '../../unit/export/mapping/mapped-bytes.js';

afterEach(() => vi.restoreAllMocks());

// A way around the usual one has to be rare on what the engine really sends; who adds an attribute or an event type that is not understood notices it here.
describe.each(LARGE_SAMPLES)('of the spans and log records of %s', (run) => {
  it('no more than one in 1,000 becomes records of its own, all others have cells', () => {
    const counts = { spans: 0, logs: 0, others: 0 };
    for (const { batches, release } of sampleDeliveries(run)) {
      for (const batch of batches) {
        if (batch instanceof CellBatch) counts[batch.chunk.isOfLogs ? 'logs' : 'spans'] += batch.to - batch.from;
        else counts.others += batch.records.filter(({ recordType }) => recordType !== 'SpanStart').length;
      }
      release?.();
    }
    expect(counts.spans).toBeGreaterThan(6_500);
    expect(counts.logs).toBeGreaterThan(2_000);
    expect(counts.others / (counts.spans + counts.logs)).toBeLessThan(0.001);
  });

  it('no more than one in 100 is read from its lines again for the run model', () => {
    const asked = vi.spyOn(ItemChunk.prototype, 'recordsOf');
    const state = new RunState({ quietAfterProcessMs: 0, quietAfterInvocationMs: 0, silenceMs: 0 });
    let itemCount = 0;
    let offset = 0;
    for (const { batches, release } of sampleDeliveries(run)) {
      const fresh = new FreshRecords();
      for (const batch of batches) {
        if (batch instanceof CellBatch) for (let at = batch.from; at < batch.to; at++) fresh.addItem(batch, at);
        else for (const record of batch.records) fresh.addRecord(record, batch.resource);
        if (batch instanceof CellBatch) itemCount += batch.to - batch.from;
      }
      for (const piece of fresh.pieces(offset)) offset = piece.offset + piece.lines.length;
      state.addPieces(fresh.pieces(offset), 1);
      release?.();
    }
    expect(itemCount).toBeGreaterThan(9_000);
    expect(asked.mock.calls.length / itemCount).toBeLessThan(0.01);
  });

  it('no more than one in 50 is mapped by plain code', () => {
    const cells = [vi.spyOn(CellWriter.prototype, 'span'), vi.spyOn(CellWriter.prototype, 'event')];
    const plain = [vi.spyOn(SpanWriter.prototype, 'write'), vi.spyOn(LogWriter.prototype, 'read')];
    mapLines(Buffer.concat(linesOf(run)));
    const [plainSpans = 0, plainLogs = 0] = plain.map(({ mock }) => mock.calls.length);
    const [spans = 0, logs = 0] = cells.map(({ mock }) => mock.calls.length);
    expect(spans).toBeGreaterThan(6_500);
    expect(logs).toBeGreaterThan(2_000);
    expect(plainSpans / spans).toBeLessThan(0.02);
    expect(plainLogs / logs).toBeLessThan(0.02);
  });

  it('no more than one line in 500 becomes a row of Parquet by plain code, of the log or of the file that the engine wrote', () => {
    const plain = vi.spyOn(PlainRows.prototype, 'write');
    const pairs = vi.spyOn(CellRows.prototype, 'writePair');
    const columns = new RowGroupColumns();
    const rows = new LineRows(columns, { isModern: true, toModern: (record) => record });
    const engineLines = sampleLines(run).map((line) => Buffer.from(`${line}\n`));
    for (const bytes of [Buffer.concat(linesOf(run)), Buffer.concat(engineLines)]) {
      rows.begin(bytes.length);
      for (let start = 0; start < bytes.length; ) {
        const end = bytes.indexOf('\n', start);
        rows.append(bytes, start, end, true);
        start = end + 1;
      }
      rows.flush();
    }
    // Nearly all starts of the log are known from their ends.
    expect(pairs.mock.calls.length).toBeGreaterThan(6_500);
    expect(columns.rowCount).toBeGreaterThan(30_000);
    expect(plain.mock.calls.length / columns.rowCount).toBeLessThan(0.002);
  });
});

/** A run's lines as the record log has them. */
function linesOf(run: string): readonly Uint8Array[] {
  const lines: Uint8Array[] = [];
  for (const { batches, release } of sampleDeliveries(run)) {
    for (const batch of batches) {
      if (!(batch instanceof CellBatch))
        lines.push(...batch.records.map((one) => Buffer.from(`${formatRecordLine(one)}\n`)));
      else for (let at = batch.from; at < batch.to; at++) lines.push(Buffer.from(batch.chunk.linesOf(at)));
    }
    release?.();
  }
  return lines;
}
