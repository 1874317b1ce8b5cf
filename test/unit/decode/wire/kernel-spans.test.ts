import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { OtlpRequestDecoder } from '../../../../src/decode/otlp-request-decoder.js';
import { PublicAttributeSchema } from '../../../../src/decode/public-attribute-schema.js';
import { lengthDelimited } from '../../../../src/decode/wire/length-delimited.js';
import { loadSpanKernel, type SpanKernel } from '../../../../src/decode/wire/span-kernel.js';
import { WireTracesDecoder } from '../../../../src/decode/wire/wire-traces-decoder.js';
import type { OtlpSpan } from '../../../../src/otlp/export-request.js';
import { JsonCodec } from '../../../../src/otlp/json-codec.js';
import { OtlpDecodeError } from '../../../../src/otlp/otlp-codec.js';
import { ProtobufCodec } from '../../../../src/otlp/protobuf-codec.js';
import { formatRecordLine } from '../../../../src/record/record-line.js';
import { SpanBatch } from '../../../../src/record/span-batch.js';
import { CELLS_PER_SPAN } from '../../../../src/record/span-page.js';
import { PublicSchema } from '../../../../src/schema/public-schema.js';
import { allTracesBodies } from '../../../fake/sample-run.js';
import { propertyRuns } from '../../../tool/property-runs.js';

const schema = new PublicAttributeSchema(PublicSchema.load());
const codec = new ProtobufCodec();
const general = { codec, decoder: new OtlpRequestDecoder(schema, new JsonCodec()) };
const plain = new WireTracesDecoder(schema, general);
const counted = countedKernel();
const kernel = new WireTracesDecoder(schema, general, counted.kernel);

/** The compiled kernel, and how many spans it has written. */
function countedKernel() {
  const kernel = loadSpanKernel();
  if (kernel === undefined) throw new Error('the kernel is not compiled: npm run build');
  const counts = { kernel: kernel as SpanKernel, spanCount: 0 };
  counts.kernel = {
    ...kernel,
    run: (at, end, linesLength) => {
      const count = kernel.run(at, end, linesLength);
      counts.spanCount += count;
      return count;
    },
  };
  return counts;
}

const bodies = allTracesBodies();
const spans = bodies.flatMap(([, body]) => {
  const request = codec.decode('traces', body);
  return request.signal === 'traces'
    ? request.resources.flatMap((group) => group.scopes.flatMap((s) => s.records))
    : [];
});

/** A body of spans, each given as its bytes. */
function bodyOf(list: readonly Uint8Array[]): Buffer {
  const service = Buffer.concat([
    lengthDelimited(1, Buffer.from('service.name')),
    lengthDelimited(2, text('dbt-fusion')),
  ]);
  const scope = lengthDelimited(1, lengthDelimited(1, Buffer.from('dbt-core')));
  const fields = list.map((span) => lengthDelimited(2, span));
  const resource = lengthDelimited(1, lengthDelimited(1, service));
  return lengthDelimited(1, Buffer.concat([resource, lengthDelimited(2, Buffer.concat([scope, ...fields]))]));
}

function text(value: string): Buffer {
  return lengthDelimited(1, Buffer.from(value));
}

/** A span's bytes as the codec writes them. */
function bytesOf(span: OtlpSpan): Buffer {
  const resource = { attributes: [], droppedAttributesCount: 0 };
  const scope = { name: '', version: '', attributes: [], droppedAttributesCount: 0 };
  const scopes = [{ scope, schemaUrl: '', records: [span] }];
  let bytes: Buffer = Buffer.from(codec.encode({ signal: 'traces', resources: [{ resource, schemaUrl: '', scopes }] }));
  // The one group's one scope's one span: each the last field of what it stands in.
  for (const number of [1, 2, 2]) bytes = lastField(bytes, number);
  return bytes;
}

function lastField(bytes: Buffer, number: number): Buffer {
  let found: Buffer = Buffer.alloc(0);
  for (let at = 0; at < bytes.length; ) {
    const tag = bytes[at++] ?? 0;
    let length = 0;
    for (let shift = 0; ; shift += 7) {
      const byte = bytes[at++] ?? 0;
      length |= (byte & 0x7f) << shift;
      if (byte < 0x80) break;
    }
    if (tag >> 3 === number) found = bytes.subarray(at, at + length);
    at += length;
  }
  return found;
}

/** All that a decoder makes of a body: the page to the byte and the number. */
function outcomeOf(decoder: WireTracesDecoder, body: Uint8Array): unknown {
  try {
    const { delivery, ...rest } = decoder.decode(body);
    const batches = delivery.batches.map((batch) => {
      if (!(batch instanceof SpanBatch)) return { ...batch, records: batch.records.map(formatRecordLine) };
      const { traceId, resource, page, from, to } = batch;
      const cells = [...page.cells.subarray(from * CELLS_PER_SPAN, to * CELLS_PER_SPAN)];
      const lines = page.lines.toString('latin1', cells[0], cells.at(2 - CELLS_PER_SPAN));
      return { traceId, resource, from, to, cells, lines, eventTypes: [...page.eventTypes] };
    });
    delivery.release?.();
    return { ...rest, foreign: delivery.foreign, batches };
  } catch (error) {
    expect(error).toBeInstanceOf(OtlpDecodeError);
    return 'refused';
  }
}

/** Decodes it twice: what JavaScript wrote the first time, the kernel can write the second time. */
function expectSame(body: Uint8Array): void {
  const expected = outcomeOf(plain, body);
  expect(outcomeOf(kernel, body)).toEqual(expected);
  expect(outcomeOf(kernel, body)).toEqual(expected);
}

const encoded = spans.map(bytesOf);

describe('the kernel', () => {
  it('writes nearly all spans of real bodies, and all of them as JavaScript does', () => {
    for (const [, body] of bodies) expectSame(body);
    const before = counted.spanCount;
    for (const [, body] of bodies) expectSame(body);
    expect(counted.spanCount - before).toBeGreaterThan(2 * 0.7 * spans.length);
  });

  it('writes what JavaScript writes of spans with bytes changed, left out and put in', () => {
    const change = fc.record({
      at: fc.nat(4000),
      byte: fc.nat(255),
      kind: fc.constantFrom('set', 'set', 'cut', 'insert'),
    });
    const changed = fc.record({ span: fc.constantFrom(...encoded), changes: fc.array(change, { maxLength: 3 }) });
    const list = fc.array(changed, { minLength: 1, maxLength: 6 });
    fc.assert(
      fc.property(list, (several) => {
        const damaged = several.map(({ span, changes }) => {
          const bytes = [...span];
          for (const { at, byte, kind } of changes) {
            bytes.splice(at % bytes.length, kind === 'insert' ? 0 : 1, ...(kind === 'cut' ? [] : [byte]));
          }
          return Uint8Array.from(bytes);
        });
        expectSame(bodyOf(damaged));
      }),
      { numRuns: propertyRuns(800) },
    );
  });

  it('writes what JavaScript writes of other ids, names, times, links, statuses and values in a known layout', () => {
    fc.assert(
      fc.property(fc.array(varied(), { minLength: 1, maxLength: 6 }), (list) => {
        expectSame(bodyOf(list.map(bytesOf)));
      }),
      { numRuns: propertyRuns(800) },
    );
    const before = counted.spanCount;
    const list = fc.sample(varied(), { numRuns: 300, seed: 1 });
    for (const span of list) expectSame(bodyOf([span, span].map(bytesOf)));
    expect(counted.spanCount - before).toBeGreaterThan(list.length);
  });

  it('takes texts of every length and with every character that needs care, wherever it stands', () => {
    const [span] = spans.filter(({ name }) => name.startsWith('Query executed ('));
    if (span === undefined) throw new Error('no sample has a query');
    const characters = ['"', '\\', '\n', '\u0001', '\u001f', '\u007f', 'ü', '日', '😀'];
    for (let length = 0; length < 70; length++) {
      const list = characters.map((character) => {
        const sql = 'x'.repeat(length) + character + 'y'.repeat(length % 19);
        const attributes = span.attributes.map((one) => (one.key === 'sql' ? { ...one, value: sql } : one));
        return bytesOf({ ...span, attributes });
      });
      expectSame(bodyOf(list));
    }
  });

  it('takes bodies that are larger than its window, with spans of all sizes', () => {
    const [span] = spans.filter(({ name }) => name.startsWith('Query executed ('));
    if (span === undefined) throw new Error('no sample has a query');
    const sizes = [10, 40_000, 100, 31_000, 33_000, 300_000, 5, 127, 128, 16_383, 16_384];
    const list = Array.from({ length: 60 }, (_, index) => {
      const value = '"'.repeat(sizes[index % sizes.length] ?? 0);
      const attributes = span.attributes.map((one) => (one.key === 'sql' ? { ...one, value } : one));
      return bytesOf({ ...span, attributes });
    });
    expectSame(bodyOf(list));
  });

  it('goes on without new layouts when there are more than it can hold', () => {
    const crowded = countedKernel();
    const decoder = new WireTracesDecoder(schema, general, crowded.kernel);
    const [span] = spans.filter(({ name }) => name.startsWith('Query executed ('));
    if (span === undefined) throw new Error('no sample has a query');
    for (let round = 0; round < 700; round++) {
      const attributes = span.attributes.flatMap((one, index) => [
        one,
        { key: `newer_${(round * 7 + index * ((round % 11) + 1)) % 41}`, value: '{"a":1}' },
      ]);
      const body = bodyOf([bytesOf({ ...span, attributes }), bytesOf(span)]);
      expect(outcomeOf(decoder, body)).toEqual(outcomeOf(plain, body));
    }
    expect(crowded.spanCount).toBeGreaterThan(600);
  });
});

/** A sample's span with other contents. */
function varied(): fc.Arbitrary<OtlpSpan> {
  const id = (length: number) =>
    fc.uint8Array({ minLength: length, maxLength: length }).map((bytes) => Buffer.from(bytes).toString('hex'));
  const usualTrace = fc.constantFrom('0af7651916cd43dd8448eb211c80319c', '0af7651916cd43dd8448eb211c80319d');
  const some = fc.oneof(
    fc.string({ unit: 'grapheme', maxLength: 40 }),
    fc.string({ unit: 'binary', maxLength: 20 }),
    fc.constantFrom(
      'EXECUTION_PHASE_RUN',
      'NODE_OUTCOME_SUCCESS',
      'success',
      '',
      '{"a":[1,2]}',
      '[]',
      '{',
      '{\n"a":1}',
    ),
    fc.constantFrom('EXECUTION_PHASE_FRESHNESS_ANALYSIS', 'EXECUTION_PHASE_TEST', 'run', 'M014'),
    fc.boolean(),
    fc.nat({ max: 2 ** 28 - 1 }).map(BigInt),
    fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n }),
  );
  const time = fc.oneof(
    fc.bigInt({ min: 0n, max: 2n ** 63n - 1n }),
    fc.constantFrom(0n, 9n, 10n ** 16n, 10n ** 16n - 1n),
  );
  const link = fc.record({
    traceId: fc.oneof(usualTrace, id(16)),
    spanId: id(8),
    traceState: fc.constant(''),
    attributes: fc.constant([]),
    droppedAttributesCount: fc.constant(0),
    flags: fc.constantFrom(0, 1),
  });
  const parts = fc.record({
    traceId: fc.oneof({ weight: 5, arbitrary: usualTrace }, { weight: 1, arbitrary: id(16) }),
    spanId: id(8),
    parentSpanId: fc.oneof(id(8), fc.constant('')),
    startTimeUnixNano: time,
    endTimeUnixNano: time,
    flags: fc.constantFrom(0, 1, 257),
    links: fc.oneof(
      { weight: 3, arbitrary: fc.constant([]) },
      { weight: 1, arbitrary: fc.array(link, { maxLength: 18 }) },
    ),
    status: fc.constantFrom(null, { code: 1, message: '' }, { code: 2, message: 'a "b"\n' }, { code: 0, message: 'ü' }),
  });
  const kept = { weight: 12, arbitrary: fc.constant(undefined) };
  const values = fc.array(fc.oneof(kept, { weight: 1, arbitrary: some }), { minLength: 24, maxLength: 24 });
  return fc
    .record({ span: fc.constantFrom(...spans), parts, ending: fc.string({ unit: 'grapheme', maxLength: 30 }), values })
    .map(({ span, parts, ending, values }) => ({
      ...span,
      ...parts,
      name: span.name + ending,
      attributes: span.attributes.map((one, index) => ({ ...one, value: values[index % 24] ?? one.value })),
    }));
}
