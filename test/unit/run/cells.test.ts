import { afterEach, describe, expect, it, vi } from 'vitest';
import { FreshRecords } from '../../../src/log/appended.js';
import { CellBatch, ItemChunk } from '../../../src/otlp/wire/item-chunk.js';
import { itemReading } from '../../../src/otlp/wire/read-items.js';
import { buffer, REGION } from '../../../src/record/arena.js';
import type { Delivery } from '../../../src/record/record-batch.js';
import { RunState } from '../../../src/run/open-run.js';
import { decodeBody } from '../../fake/decode-at-once.js';
import { sampleDeliveries, sampleDeliveriesOfRecords } from '../../fake/sample-deliveries.js';
import { sampleBodies } from '../../fake/sample-run.js';
import { LARGE_SAMPLES } from '../../tool/large-samples.js';

const NO_WAIT = { quietAfterProcessMs: 0, quietAfterInvocationMs: 0, silenceMs: 0 };
const RUNS = ['build-clean', 'build-mixed', 'fail-fast', 'interrupted', 'joined', 'test-command', ...LARGE_SAMPLES];

const OUTCOME = 'NODE_OUTCOME_SUCCESS';

/** A sample's deliveries where each success has a word of its own. */
function* deliveriesWithOwnWords(run: string): Iterable<Delivery> {
  let count = 0;
  for (const { signal, body } of sampleBodies(run)) {
    for (let at = body.indexOf(OUTCOME); at >= 0; at = body.indexOf(OUTCOME, at + 1)) {
      count += 1;
      body.write(`NODE_OUTCOME_W${String(count).padStart(6, '0')}`, at);
    }
    yield decodeBody(signal, body).delivery;
  }
}

/** What a run's deliveries add up to, told one by one as a record log tells of them. */
function judge(deliveries: Iterable<Delivery>) {
  const state = new RunState(NO_WAIT);
  let offset = 0;
  for (const { batches, release } of deliveries) {
    const fresh = new FreshRecords();
    for (const batch of batches) {
      if (batch instanceof CellBatch) for (let at = batch.from; at < batch.to; at++) fresh.addItem(batch, at);
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

afterEach(() => vi.restoreAllMocks());

describe('a run whose spans and log records have cells', () => {
  it.each(RUNS)('adds up to what its records add up to: %s', (run) => {
    const byCells = judge(sampleDeliveries(run));
    expect(byCells.invocations.length).toBeGreaterThan(0);
    expect(byCells).toEqual(judge(sampleDeliveriesOfRecords(run)));
  });

  it('also when their nodes ended in more ways than are remembered', () => {
    const byCells = judge(deliveriesWithOwnWords('big-build'));
    const words = Object.keys(byCells.invocations[0]?.nodeCounts ?? {});
    expect(words).toContain('other');
    const records = [...deliveriesWithOwnWords('big-build')].map(({ batches, passthrough }) => ({
      batches: batches.map(({ traceId, resource, records }) => ({ traceId, resource, records })),
      passthrough,
    }));
    expect(byCells).toEqual(judge(records));
  });

  it.each(LARGE_SAMPLES)('also when others needed the room of its items, and layouts were forgotten: %s', (run) => {
    const deliveries = [...sampleDeliveries(run)];
    const isSpilled = vi.spyOn(ItemChunk.prototype, 'spill');
    // Until all room was needed.
    const others = Array.from({ length: 12 }, () => [...sampleDeliveries('big-build')]).flat();
    const { layouts } = itemReading();
    const { forgottenCount } = layouts;
    for (const name of Array.from({ length: 5_000 }, (_, number) => `name_${number}`)) {
      layouts.tidy();
      layouts.ofLog(...placeOf('v1.public.events.fusion.log.LogMessage'))?.first.follow(...keyOf(name));
    }
    layouts.tidy();
    expect(layouts.forgottenCount).toBeGreaterThan(forgottenCount);
    expect(isSpilled.mock.calls.length).toBeGreaterThan(10);
    const byCells = judge(deliveries);
    for (const { release } of others) release?.();
    expect(byCells).toEqual(judge(sampleDeliveriesOfRecords(run)));
  });
});

const SCRATCH = REGION.scratch + 1024;

function placeOf(text: string): readonly [start: number, end: number] {
  return [SCRATCH, SCRATCH + buffer.write(text, SCRATCH)];
}

function keyOf(name: string): readonly [start: number, length: number] {
  const [start, end] = placeOf(name);
  return [start, end - start];
}
