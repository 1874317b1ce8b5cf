import { describe, expect, it } from 'vitest';
import { OtlpEncoder } from '../../../src/export/otlp-destination.js';
import { loggedRecords } from '../../../src/log/appended.js';
import { JsonCodec } from '../../../src/otlp/json-codec.js';
import { ProtobufCodec } from '../../../src/otlp/protobuf-codec.js';
import type { TelemetryRecord } from '../../../src/record/telemetry-record.js';
import { logRecord, MemoryRecordLog, spanEnd, traceIdOf } from '../../fake/memory-record-log.js';
import { SimpleRunMapper } from '../../fake/simple-run-mapper.js';

const RUN = traceIdOf(1);
const CODECS = { protobuf: new ProtobufCodec(), json: new JsonCodec() };

function spans(count: number, eventsEach = 0) {
  const mapper = new SimpleRunMapper(count);
  const numbers = Array.from({ length: count }, (_, index) => index + 1);
  const events = Array.from({ length: eventsEach }, () => 'x'.repeat(100));
  const log = new MemoryRecordLog();
  const push = (...records: readonly TelemetryRecord[]) =>
    mapper.push(log.append(RUN, ...records).pieces.flatMap(loggedRecords));
  push(...numbers.map((number) => spanEnd(RUN, number)));
  for (const number of numbers) {
    for (const event of events) push(logRecord(RUN, number, event));
  }
  return mapper.take(true).flatMap((item) => (item.signal === 'traces' ? [item.span] : []));
}

describe.each(['protobuf', 'json'] as const)('the OTLP encoder in %s', (encoding) => {
  it('encodes a batch that an independent decoder reads', () => {
    const { body, itemCount } = new OtlpEncoder(encoding).encode({ signal: 'traces', items: spans(3) });
    const request = CODECS[encoding].decode('traces', body);
    const names = request.resources.flatMap((resource) =>
      resource.scopes.flatMap((scope) => scope.records.map((record) => ('name' in record ? record.name : ''))),
    );
    expect(itemCount).toBe(3);
    expect(names).toEqual(['span 1', 'span 2', 'span 3']);
  });

  it('puts as many items into a body as stay below its limit', () => {
    const items = spans(40, 20);
    const { body, itemCount } = new OtlpEncoder(encoding, 20_000).encode({ signal: 'traces', items });
    expect(body.byteLength).toBeLessThanOrEqual(20_000);
    expect(itemCount).toBeGreaterThan(1);
    expect(itemCount).toBeLessThan(40);
  });

  it('encodes an item alone that is larger than the limit', () => {
    const { itemCount } = new OtlpEncoder(encoding, 100).encode({ signal: 'traces', items: spans(3, 20) });
    expect(itemCount).toBe(1);
  });
});
