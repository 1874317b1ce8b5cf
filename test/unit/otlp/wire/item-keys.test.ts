import { describe, expect, it } from 'vitest';
import { readItemKeys } from '../../../../src/otlp/wire/item-keys.js';
import type { Signal } from '../../../../src/record/record-batch.js';
import { spanIdHalves } from '../../../../src/record/span-id-table.js';
import { decodeBody } from '../../../fake/decode-at-once.js';
import { SENT_SAMPLES, sampleBodies } from '../../../fake/sample-run.js';

const BODIES = SENT_SAMPLES.flatMap((run) => sampleBodies(run).map((one) => ({ ...one, name: `${run} ${one.file}` })));

/** The same of decoded records. */
function keysOf(signal: Signal, bytes: Uint8Array) {
  const { batches } = decodeBody(signal, bytes).delivery;
  const records = batches.flatMap(({ records: some }) => some);
  return {
    traceId: batches[0]?.traceId,
    spanIds: records.flatMap((record) => (record.recordType === 'SpanEnd' ? [...spanIdHalves(record.spanId)] : [])),
    logs: records.flatMap((record) => {
      if (record.recordType !== 'LogRecord') return [];
      const { spanId, timeUnixNano, eventType, body } = record;
      return [{ spanId, timeUnixNano, eventType, body }];
    }),
  };
}

describe.each(BODIES)('the keys of a request ($name)', ({ signal, body: bytes }) => {
  it('are those of its records', () => {
    const keys = readItemKeys(signal, bytes);
    const signed = { ...keys, spanIds: keys?.spanIds.map((half) => half >>> 0) };
    const expected = keysOf(signal, bytes);
    expect(signed).toEqual({ ...expected, spanIds: expected.spanIds.map((half) => half >>> 0) });
  });

  it('are not read where its end is cut off', () => {
    expect(readItemKeys(signal, bytes.subarray(0, -1))).toBeUndefined();
  });
});

it('are not read of a request of two traces, or of none', () => {
  const [first = Buffer.alloc(0), ...others] = BODIES.filter(({ signal }) => signal === 'traces').map(
    ({ body }) => body,
  );
  const { traceId } = keysOf('traces', first);
  const second = others.find((one) => keysOf('traces', one).traceId !== traceId) ?? first;
  expect(readItemKeys('traces', Buffer.concat([first, second]))).toBeUndefined();
  expect(readItemKeys('traces', Buffer.concat([first, first]))?.traceId).toBe(traceId);
  expect(readItemKeys('traces', Buffer.alloc(0))).toBeUndefined();
  expect(readItemKeys('logs', Buffer.alloc(0))).toBeUndefined();
});
