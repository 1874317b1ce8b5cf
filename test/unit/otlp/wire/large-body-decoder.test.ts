import { describe, expect, it } from 'vitest';
import { lengthDelimited } from '../../../../src/otlp/any-value.js';
import { JsonCodec } from '../../../../src/otlp/json-codec.js';
import { OtlpDecodeError } from '../../../../src/otlp/otlp-codec.js';
import { ProtobufCodec } from '../../../../src/otlp/protobuf-codec.js';
import { splitJson } from '../../../../src/otlp/split-json.js';
import {
  type DecodedRequest,
  JsonDecoder,
  LargeBodyDecoder,
  MAX_RECORDS,
  splitProtobuf,
  WireDecoder,
} from '../../../../src/otlp/wire/wire-decoder.js';
import type { Signal } from '../../../../src/record/record-batch.js';
import { formatRecordLine } from '../../../../src/record/record-line.js';
import { decodeAtOnce } from '../../../fake/decode-at-once.js';
import { sampleBodies } from '../../../fake/sample-run.js';

const json = new JsonCodec();
const codecs = { protobuf: new ProtobufCodec(), json };
const wire = { traces: new WireDecoder('traces', codecs), logs: new WireDecoder('logs', codecs) };

const piecewise = (signal: Signal, pieceBytes?: number) =>
  new LargeBodyDecoder(signal, wire[signal], splitProtobuf, pieceBytes);

const bodies = sampleBodies('joined').map(({ file, signal, body }) => [file, signal, body] as const);
/** A span or log record of which nothing is known. */
const RECORD = Buffer.from([0x48, 1]);

/** The delivery's records as lines, with whose they are; batches of one trace and resource may come in parts. */
function linesOf(decode: () => DecodedRequest): unknown {
  const { delivery, rejectedCount, rejectionMessage } = decode();
  const lines = delivery.batches.flatMap(({ traceId, resource, records }) =>
    records.map((record) => [traceId, resource, formatRecordLine(record)]),
  );
  return { lines, passthroughCount: delivery.passthrough.length, rejectedCount, rejectionMessage };
}

describe('decoding a request piece by piece', () => {
  it.each(bodies)('gives the records that decoding %s whole gives', (_name, signal, body) => {
    const whole = linesOf(() => wire[signal].decode(body));
    for (const pieceBytes of [1, 700, 20_000]) {
      expect(linesOf(() => decodeAtOnce(piecewise(signal, pieceBytes), body))).toEqual(whole);
    }
  });

  it('counts what is rejected over all pieces', () => {
    const records = Buffer.concat(Array.from({ length: 50 }, () => lengthDelimited(2, RECORD)));
    const body = lengthDelimited(1, lengthDelimited(2, records));
    expect(decodeAtOnce(piecewise('traces', 10), body)).toMatchObject({ rejectedCount: 50 });
  });

  it.each([
    ['cut off', (body: Buffer) => body.subarray(0, -1)],
    ['with garbage behind it', (body: Buffer) => Buffer.concat([body, Buffer.from([0x0b])])],
    ['with a length beyond its end', () => Buffer.from([0x0a, 0xff, 0x7f])],
  ])('refuses a request %s', (_name, change) => {
    const [, signal, body] = bodies[0] ?? ['', 'traces', Buffer.alloc(0)];
    expect(() => decodeAtOnce(piecewise(signal, 100), change(body))).toThrow(OtlpDecodeError);
  });

  it.each([
    ['a field of number 0', Buffer.from([0x00, 0x00])],
    ['a field of number 0 in a group', lengthDelimited(1, Buffer.from([0x00, 0x00]))],
    ['a field of number 0 in a scope', lengthDelimited(1, lengthDelimited(2, Buffer.from([0x02, 0x00])))],
  ])('refuses %s, as decoding it whole does', (_what, body) => {
    expect(() => wire.traces.decode(body)).toThrow(OtlpDecodeError);
    expect(() => decodeAtOnce(piecewise('traces', 1), body)).toThrow(OtlpDecodeError);
  });

  it('does not repeat a large resource over and over', () => {
    const resource = lengthDelimited(1, lengthDelimited(1, lengthDelimited(1, Buffer.alloc(1_000_000, 'a'))));
    const scopes = Buffer.concat(Array.from({ length: 1000 }, () => lengthDelimited(2, lengthDelimited(2, RECORD))));
    const body = lengthDelimited(1, Buffer.concat([resource, scopes]));
    const pieces = [...splitProtobuf('traces', body, 10, () => {})].flatMap((piece) => piece ?? []);
    expect(pieces.reduce((sum, { length }) => sum + length, 0)).toBeLessThan(2 * body.length);
  });
});

describe('decoding a request in JSON piece by piece', () => {
  const cutting = (signal: Signal, pieceBytes?: number) =>
    new LargeBodyDecoder(signal, new JsonDecoder(signal, wire[signal], codecs), splitJson, pieceBytes);

  it.each(bodies)('gives the records that decoding %s whole gives', (_name, signal, body) => {
    const request = json.encode(codecs.protobuf.decode(signal, body));
    const spaced = Buffer.from(JSON.stringify(JSON.parse(Buffer.from(request).toString()), undefined, 2));
    const whole = linesOf(() => wire[signal].decode(body));
    for (const text of [request, spaced]) {
      for (const pieceBytes of [1, 700, 20_000]) {
        expect(linesOf(() => decodeAtOnce(cutting(signal, pieceBytes), text))).toEqual(whole);
      }
    }
  });

  it('says in which part of it something is wrong', () => {
    const body = `{"resourceSpans":[{"scopeSpans":[{"spans":[{"name":"a"},{"name":5}]}]}]}`;
    expect(() => decodeAtOnce(cutting('traces', 10), Buffer.from(body))).toThrow(
      'Part 2 of the body, of 10 bytes each: resourceSpans[0].scopeSpans[0].spans[0].name must be a string, not 5.',
    );
  });

  it.each([
    ['resources', '{"resourceSpans":[', '{},', '{}]}', '50000 resources'],
    ['scopes', '{"resourceSpans":[{"scopeSpans":[', '{},', '{}]}]}', '50000 scopes'],
    ['spans', '{"resourceSpans":[{"scopeSpans":[{"spans":[', '{},', '{}]}]}]}', '300000 spans or log records'],
    ['links of a span', '{"resourceSpans":[{"scopeSpans":[{"spans":[{"links":[', '{},', '{}]}]}]}]}', '200000 fields'],
    ['attributes of a resource', '{"resourceSpans":[{"resource":{"attributes":[', '{},', '{}]}}]}', '200000 fields'],
  ])('refuses millions of empty %s before any is made', (_what, begin, one, end, bound) => {
    const body = Buffer.concat([Buffer.from(begin), Buffer.alloc(3_000_000, one), Buffer.from(end)]);
    const steps = cutting('traces').decodeInSteps(body);
    expect(() => {
      while (steps.next().done !== true);
    }).toThrow(`A request may hold ${bound}`);
  });

  it('refuses a long one that is damaged, or has a list twice', () => {
    const spans = `[${'{"scopeSpans":[{}]},'.repeat(100_000)}{}]`;
    for (const body of [`{"resourceSpans":${spans}`, `{"resourceSpans":[],"resourceSpans":${spans}}`]) {
      expect(() => decodeAtOnce(cutting('traces'), Buffer.from(body))).toThrow(OtlpDecodeError);
    }
  });
});

const TRACE_ID = lengthDelimited(1, Buffer.alloc(16, 7));
const ENGINE = lengthDelimited(1, lengthDelimited(1, Buffer.from('dbt-core')));

describe('a request of very many very small records', () => {
  const times = Buffer.concat([Buffer.from([0x39]), Buffer.alloc(8, 1), Buffer.from([0x41]), Buffer.alloc(8, 1)]);
  const span = lengthDelimited(2, Buffer.concat([TRACE_ID, lengthDelimited(2, Buffer.alloc(8, 9)), times]));
  const request = (count: number) =>
    lengthDelimited(1, lengthDelimited(2, Buffer.concat([ENGINE, ...Array.from({ length: count }, () => span)])));

  it('is refused beyond the limit, even if none of them could be kept', () => {
    const spans = Buffer.alloc(600_000 * 2, lengthDelimited(2, Buffer.alloc(0)));
    const body = lengthDelimited(1, lengthDelimited(2, spans));
    expect(() => decodeAtOnce(piecewise('traces'), body)).toThrow(/may hold 300000 spans or log records/);
  });

  it('is refused beyond the limit, decoded straight or piece by piece', () => {
    const body = request(MAX_RECORDS / 2 + 1);
    expect(() => wire.traces.decode(body)).toThrow(/more than 300000 records/);
    expect(() => decodeAtOnce(piecewise('traces'), body)).toThrow(/more than 300000 records/);
  });
});
