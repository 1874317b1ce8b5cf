import { describe, expect, it } from 'vitest';
import { inferLogSpanName } from '../../../src/otlp/attribute-schema.js';
import { JsonCodec } from '../../../src/otlp/json-codec.js';
import { ProtobufCodec } from '../../../src/otlp/protobuf-codec.js';
import { linesRequest, RecordsToRequests } from '../../../src/otlp/records-to-request.js';
import { UNKNOWN_RESOURCE } from '../../../src/record/attributes.js';
import { formatRecordLine, parseRecordLine } from '../../../src/record/record-line.js';
import type { TelemetryRecord } from '../../../src/record/telemetry-record.js';
import { decodeBody, decodeRequest } from '../../fake/decode-at-once.js';
import { sampleBodies, sampleRecords, sampleTraceId } from '../../fake/sample-run.js';
import { LARGE_SAMPLES } from '../../tool/large-samples.js';

const small = ['build-mixed', 'build-mixed-fusion', 'build-clean', 'joined', 'parse', 'fail-fast', 'interrupted'];
const runs = [...small, ...LARGE_SAMPLES];
const protobuf = new ProtobufCodec();
const json = new JsonCodec();

function decodedSample(run: string): TelemetryRecord[] {
  return sampleBodies(run).flatMap(({ signal, body }) => {
    const { delivery, rejectedCount } = decodeBody(signal, body);
    expect(rejectedCount).toBe(0);
    expect(delivery.passthrough).toEqual([]);
    return delivery.batches.flatMap((batch) => batch.records);
  });
}

/** A record as JSON text, less what OTLP leaves out, for comparing in any order. */
function comparable(record: TelemetryRecord): string {
  const value = JSON.parse(formatRecordLine(record)) as Record<string, unknown> & {
    attributes: Record<string, unknown>;
  };
  if (record.recordType === 'LogRecord') {
    delete value.event_id;
    delete value.span_name;
  }
  delete value.attributes.line;
  delete value.attributes.file;
  return JSON.stringify(value);
}

function comparables(records: readonly TelemetryRecord[], type: TelemetryRecord['recordType']): string[] {
  return records
    .filter(({ recordType }) => recordType === type)
    .map(comparable)
    .sort();
}

describe.each(runs)('the OTLP bodies of %s', (run) => {
  const engine = sampleRecords(run);
  const decoded = decodedSample(run);

  it('give every ended span as the engine wrote it', () => {
    expect(comparables(decoded, 'SpanEnd')).toEqual(comparables(engine, 'SpanEnd'));
  });

  it('give every log record as the engine wrote it', () => {
    expect(comparables(decoded, 'LogRecord')).toEqual(comparables(engine, 'LogRecord'));
  });

  it('give each ended span a start as the engine wrote it, less what it filled in later', () => {
    const ended = new Set(engine.filter(({ recordType }) => recordType === 'SpanEnd').map(({ spanId }) => spanId));
    const starts = engine.filter((record) => record.recordType === 'SpanStart' && ended.has(record.spanId));
    expect(comparables(decoded, 'SpanStart').map(lessLater)).toEqual(comparables(starts, 'SpanStart').map(lessLater));
  });
});

/**
 * The engine starts some upstream-skipped nodes with their outcome and others without, phases with any count, and waits for a
 * connection with how many there are then, in their name too.
 */
function lessLater(line: string): string {
  const value = JSON.parse(line) as { span_name: string; attributes: Record<string, unknown> };
  if (value.span_name.startsWith('Connection limit wait'))
    return JSON.stringify({ ...value, span_name: '', attributes: {} });
  for (const name of ['node_outcome', 'node_skip_reason', 'node_skip_upstream_detail']) delete value.attributes[name];
  for (const name of ['node_count_skipped', 'node_count_error']) delete value.attributes[name];
  return JSON.stringify(value);
}

describe('the name of a log record’s span', () => {
  it.each(['build-clean', 'build-mixed-fusion', 'joined', 'parse', 'interrupted', 'fail-fast', 'big-build'])(
    'is known from the record alone in %s, which has no trace-level spans',
    (run) => {
      for (const record of sampleRecords(run)) {
        if (record.recordType === 'LogRecord') expect(inferLogSpanName(record)).toBe(record.spanName);
      }
    },
  );
});

describe.each([...runs, 'preview-120-failed'])('the records of %s', (run) => {
  it.each([
    ['protobuf', protobuf],
    ['JSON', json],
  ])('come back whole through OTLP as %s', (_name, codec) => {
    const engine = sampleRecords(run);
    const builder = new RecordsToRequests();
    const batch = { traceId: sampleTraceId(run), resource: UNKNOWN_RESOURCE, records: engine };
    const back = [...builder.push(batch), ...builder.finish()].flatMap((request) => {
      const { delivery, rejectedCount } = decodeRequest(codec.decode(request.signal, codec.encode(request)));
      expect(rejectedCount).toBe(0);
      return delivery.batches.flatMap(({ records }) => records);
    });
    const sorted = (records: readonly TelemetryRecord[]) =>
      records.map((record) => JSON.stringify(JSON.parse(formatRecordLine(record)))).sort();
    expect(sorted(back)).toEqual(sorted(engine.map((record) => parseRecordLine(formatRecordLine(record)))));
  });

  it('come back in their order as lines, each at once, starts of spans that have not ended too', () => {
    const records = sampleRecords(run);
    const back = linesRequest({ traceId: sampleTraceId(run), resource: UNKNOWN_RESOURCE, records }).flatMap(
      (request) => decodeRequest(request).delivery.batches,
    );
    expect(back.flatMap((batch) => batch.records.map(formatRecordLine))).toEqual(records.map(formatRecordLine));
  });
});
