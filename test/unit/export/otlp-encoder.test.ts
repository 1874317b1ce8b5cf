import { describe, expect, it } from 'vitest';
import { RequestEncoder } from '../../../src/export/wire/export-request.js';
import { loggedRecords } from '../../../src/log/appended.js';
import { JsonCodec } from '../../../src/otlp/json-codec.js';
import type { OtlpEncoding } from '../../../src/otlp/otlp-codec.js';
import { ProtobufCodec } from '../../../src/otlp/protobuf-codec.js';
import type { TelemetryRecord } from '../../../src/record/telemetry-record.js';
import { logRecord, MemoryRecordLog, spanEnd, traceIdOf } from '../../fake/memory-record-log.js';
import { SimpleRunMapper } from '../../fake/simple-run-mapper.js';

const RUN = traceIdOf(1);
const CODECS = { protobuf: new ProtobufCodec(), json: new JsonCodec() };
const load = async () => CODECS;

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
  return { signal: 'traces' as const, ranges: mapper.take(true).traces };
}

/** Names of spans, read by what did not write them. */
function namesIn(encoding: OtlpEncoding, body: Uint8Array): readonly string[] {
  if (encoding === 'json') {
    const { resourceSpans } = JSON.parse(Buffer.from(body).toString('utf8')) as {
      resourceSpans: { scopeSpans: { spans: { name: string }[] }[] }[];
    };
    return resourceSpans.flatMap(({ scopeSpans }) => scopeSpans.flatMap(({ spans }) => spans.map(({ name }) => name)));
  }
  const { resources } = CODECS.protobuf.decode('traces', body);
  return resources.flatMap(({ scopes }) =>
    scopes.flatMap(({ records }) => records.map((record) => ('name' in record ? record.name : ''))),
  );
}

describe.each(['protobuf', 'json'] as const)('the OTLP encoder in %s', (encoding) => {
  it('encodes a batch that an independent decoder reads', async () => {
    const { body, itemCount } = await new RequestEncoder(encoding, load, 1_000_000).encode(spans(3));
    expect(itemCount).toBe(3);
    expect(namesIn(encoding, body)).toEqual(['span 1', 'span 2', 'span 3']);
  });

  it('puts as many items into a body as stay below its limit', async () => {
    const { body, itemCount } = await new RequestEncoder(encoding, load, 20_000).encode(spans(40, 20));
    expect(body.byteLength).toBeLessThanOrEqual(20_000);
    expect(itemCount).toBeGreaterThan(1);
    expect(itemCount).toBeLessThan(40);
  });

  it('encodes an item alone that is larger than the limit', async () => {
    const { itemCount } = await new RequestEncoder(encoding, load, 100).encode(spans(3, 20));
    expect(itemCount).toBe(1);
  });
});
