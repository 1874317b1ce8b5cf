import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { LineScanner } from '../../src/exporter/lines/line-scanner.js';
import { SpanTranscoder } from '../../src/exporter/lines/span-transcoder.js';
import { SpanBatch } from '../../src/record/span-batch.js';
import { SpanPage } from '../../src/record/span-page.js';
import { RunState } from '../../src/run/run-state.js';
import { FreshRecords } from '../../src/sink/fresh-records.js';
import { sampleDeliveries } from '../fake/sample-deliveries.js';
import { LARGE_SAMPLES, largeSampleFolder } from '../tool/large-samples.js';
import { mapLines } from './exporter/lines/mapped-bytes.js';

afterEach(() => vi.restoreAllMocks());

// A way around the usual one has to be rare on what the engine really sends; who adds an attribute or an event type that is not understood notices it here.
describe.each(LARGE_SAMPLES)('of the spans of %s', (run) => {
  it('no more than 3 in 100 are left to the general decoder', () => {
    const counts = { straight: 0, generally: 0 };
    for (const { batches, release } of sampleDeliveries(run)) {
      for (const batch of batches) {
        if (batch instanceof SpanBatch) counts.straight += batch.to - batch.from;
        else counts.generally += batch.records.filter(({ recordType }) => recordType === 'SpanEnd').length;
      }
      release?.();
    }
    expect(counts.straight).toBeGreaterThan(6_500);
    expect(counts.generally / counts.straight).toBeLessThan(0.03);
  });

  it('no more than one in 100 is read from its lines again for the run model', () => {
    const asked = vi.spyOn(SpanPage.prototype, 'recordsOf');
    const state = new RunState({ quietAfterProcessMs: 0, quietAfterInvocationMs: 0, silenceMs: 0 });
    let spanCount = 0;
    let offset = 0;
    for (const { batches, release } of sampleDeliveries(run)) {
      const fresh = new FreshRecords();
      for (const batch of batches) {
        if (batch instanceof SpanBatch) for (let span = batch.from; span < batch.to; span++) fresh.addSpan(batch, span);
        else for (const record of batch.records) fresh.addRecord(record, batch.resource);
        if (batch instanceof SpanBatch) spanCount += batch.to - batch.from;
      }
      for (const piece of fresh.pieces(offset)) offset = piece.offset + piece.lines.length;
      state.addPieces(fresh.pieces(offset), 1);
      release?.();
    }
    expect(spanCount).toBeGreaterThan(6_500);
    expect(asked.mock.calls.length / spanCount).toBeLessThan(0.01);
  });

  it('no more than 2 in 100 are made records of for exports', () => {
    const scanned = vi.spyOn(LineScanner.prototype, 'scan');
    const transcoded = vi.spyOn(SpanTranscoder.prototype, 'write');
    mapLines(readFileSync(join(largeSampleFolder(run), 'otel.jsonl')));
    const spanLines = scanned.mock.results.filter(({ value }) => value === true).length;
    const left = transcoded.mock.results.filter(({ value }) => value !== true).length;
    expect(spanLines).toBeGreaterThan(14_000);
    expect(left / transcoded.mock.results.length).toBeLessThan(0.02);
  });
});
