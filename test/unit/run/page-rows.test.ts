import { describe, expect, it } from 'vitest';
import { FreshRecords } from '../../../src/log/trace-log.js';
import type { Delivery } from '../../../src/record/record-batch.js';
import { PageBatch } from '../../../src/record/record-page.js';
import { RunState } from '../../../src/run/open-run.js';
import { sampleDeliveries, sampleDeliveriesOfRecords } from '../../fake/sample-deliveries.js';
import { LARGE_SAMPLES } from '../../tool/large-samples.js';

const NO_WAIT = { quietAfterProcessMs: 0, quietAfterInvocationMs: 0, silenceMs: 0 };
const RUNS = ['build-clean', 'build-mixed', 'fail-fast', 'interrupted', 'joined', 'test-command', ...LARGE_SAMPLES];

/** What a run's deliveries add up to, told one by one as a record log tells of them. */
function judge(deliveries: Iterable<Delivery>) {
  const state = new RunState(NO_WAIT);
  let offset = 0;
  for (const { batches, release } of deliveries) {
    const fresh = new FreshRecords();
    for (const batch of batches) {
      if (batch instanceof PageBatch) for (let row = batch.from; row < batch.to; row++) fresh.addRow(batch, row);
      else for (const record of batch.records) fresh.addRecord(record, batch.resource);
    }
    const pieces = fresh.pieces(offset);
    state.addPieces(pieces, 1);
    const last = pieces.at(-1);
    offset = last === undefined ? offset : last.offset + last.lines.length;
    release?.();
  }
  return state.judge(2);
}

describe('a run whose spans and log records come in pages', () => {
  it.each(RUNS)('adds up to what its records add up to: %s', (run) => {
    const inPages = judge(sampleDeliveries(run));
    expect(inPages.invocations.length).toBeGreaterThan(0);
    expect(inPages).toEqual(judge(sampleDeliveriesOfRecords(run)));
  });
});
