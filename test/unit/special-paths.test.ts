import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { LineAttributes } from '../../src/export/lines/line-intake.js';
import { LineScanner } from '../../src/export/lines/line-scanner.js';
import { FreshRecords } from '../../src/log/trace-log.js';
import { PageBatch, RecordPage } from '../../src/record/record-page.js';
import { RunState } from '../../src/run/open-run.js';
import { sampleDeliveries } from '../fake/sample-deliveries.js';
import { LARGE_SAMPLES, largeSampleFolder } from '../tool/large-samples.js';
import { mapLines } from './export/lines/mapped-bytes.js';

afterEach(() => vi.restoreAllMocks());

// A way around the usual one has to be rare on what the engine really sends; who adds an attribute or an event type that is not understood notices it here.
describe.each(LARGE_SAMPLES)('of the spans and log records of %s', (run) => {
  it('no more than one in 1,000 becomes records of its own, all others rows of a page', () => {
    const counts = { spans: 0, logs: 0, others: 0 };
    for (const { batches, release } of sampleDeliveries(run)) {
      for (const batch of batches) {
        if (batch instanceof PageBatch) {
          for (let row = batch.from; row < batch.to; row++) counts[batch.page.isLog(row) ? 'logs' : 'spans'] += 1;
        } else counts.others += batch.records.filter(({ recordType }) => recordType !== 'SpanStart').length;
      }
      release?.();
    }
    expect(counts.spans).toBeGreaterThan(6_500);
    expect(counts.logs).toBeGreaterThan(2_000);
    expect(counts.others / (counts.spans + counts.logs)).toBeLessThan(0.001);
  });

  it('no more than one in 100 is read from its lines again for the run model', () => {
    const asked = vi.spyOn(RecordPage.prototype, 'recordsOf');
    const state = new RunState({ quietAfterProcessMs: 0, quietAfterInvocationMs: 0, silenceMs: 0 });
    let rowCount = 0;
    let offset = 0;
    for (const { batches, release } of sampleDeliveries(run)) {
      const fresh = new FreshRecords();
      for (const batch of batches) {
        if (batch instanceof PageBatch) for (let row = batch.from; row < batch.to; row++) fresh.addRow(batch, row);
        else for (const record of batch.records) fresh.addRecord(record, batch.resource);
        if (batch instanceof PageBatch) rowCount += batch.to - batch.from;
      }
      for (const piece of fresh.pieces(offset)) offset = piece.offset + piece.lines.length;
      state.addPieces(fresh.pieces(offset), 1);
      release?.();
    }
    expect(rowCount).toBeGreaterThan(9_000);
    expect(asked.mock.calls.length / rowCount).toBeLessThan(0.01);
  });

  it('no more than one line in 1,000 is written anew for exports, or has its attributes put together', () => {
    const scanned = vi.spyOn(LineScanner.prototype, 'scan');
    const written = vi.spyOn(LineAttributes.prototype, 'write');
    mapLines(readFileSync(join(largeSampleFolder(run), 'otel.jsonl')));
    const anew = scanned.mock.results.filter(({ value }) => value !== true).length;
    const together = written.mock.results.filter(({ value }) => 'event_type' in value).length;
    expect(scanned.mock.results.length).toBeGreaterThan(16_000);
    expect(written.mock.results.length).toBeGreaterThan(9_000);
    expect(anew / scanned.mock.results.length).toBeLessThan(0.001);
    expect(together / written.mock.results.length).toBeLessThan(0.001);
  });
});
