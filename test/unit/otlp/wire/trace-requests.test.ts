import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { lengthDelimited } from '../../../../src/otlp/any-value.js';
import type { ExportRequest } from '../../../../src/otlp/export-request.js';
import { JsonCodec } from '../../../../src/otlp/json-codec.js';
import { OtlpDecodeError, type OtlpEncoding } from '../../../../src/otlp/otlp-codec.js';
import { ProtobufCodec } from '../../../../src/otlp/protobuf-codec.js';
import { type TraceRequest, TraceSplitter } from '../../../../src/otlp/wire/trace-requests.js';
import type { Signal } from '../../../../src/record/record-batch.js';
import { sampleBodies } from '../../../fake/sample-run.js';
import { arbitraryRequest } from '../arbitrary-request.js';

const MESSAGE_BYTES = 1_000_000;
const codecs = { protobuf: new ProtobufCodec(), json: new JsonCodec() };
const split = (signal: Signal, body: Uint8Array, maxBytes = MESSAGE_BYTES, encoding: OtlpEncoding = 'protobuf') =>
  new TraceSplitter(signal, codecs).split(encoding, body, maxBytes);

/** Every item with its resource and scope, as text in an order of its own; read by protobufjs. */
function itemsOf(request: ExportRequest, isWanted: (traceId: string) => boolean = () => true): readonly string[] {
  const items: string[] = [];
  for (const { scopes, ...group } of request.resources) {
    for (const { records, ...scope } of scopes) {
      for (const record of records as readonly { readonly traceId: string }[]) {
        if (isWanted(record.traceId)) items.push(text({ group, scope, record }));
      }
    }
  }
  return items.sort();
}

const text = (value: unknown): string =>
  JSON.stringify(value, (_key, one: unknown) =>
    typeof one === 'bigint' ? `${one}n` : Object.is(one, -0) ? '-0' : one,
  );
const itemsOfAll = (signal: Signal, requests: readonly TraceRequest[]) =>
  requests.flatMap(({ bytes }) => itemsOf(codecs.protobuf.decode(signal, bytes))).sort();
const isTraceId = (id: string) => id.length === 32 && !/^0+$/.test(id);

describe('cutting a request by trace', () => {
  it('leaves a request of the engine, which is of one trace, as it is', async () => {
    for (const { signal, body } of sampleBodies('build-mixed')) {
      const { requests, rejectedCount } = await split(signal, body);
      expect([requests.length, requests[0]?.bytes.equals(body), rejectedCount]).toEqual([1, true, 0]);
    }
  });

  it('gives each trace its own, with every item and its resource and scope', async () => {
    const runs = ['build-mixed', 'fail-fast', 'parse'];
    for (const signal of ['traces', 'logs'] as const) {
      // Concatenated requests are one request.
      const bodies = runs.map((run) => sampleBodies(run).filter((one) => one.signal === signal));
      const body = Buffer.concat([0, 1, 2, 3].flatMap((index) => bodies.flatMap((own) => own[index]?.body ?? [])));
      const { requests } = await split(signal, body);
      const ids = requests.map(({ traceId }) => traceId);
      expect(new Set(ids).size).toBe(ids.length);
      expect(ids.length).toBeGreaterThan(1);
      for (const { traceId, bytes } of requests) {
        const own = itemsOf(codecs.protobuf.decode(signal, body), (id) => id === traceId);
        expect(itemsOf(codecs.protobuf.decode(signal, bytes))).toEqual(own);
      }
    }
  });

  it.each(['protobuf', 'json'] as const)(
    'keeps messages below what they may have, and every item once (%s)',
    async (encoding) => {
      const all = sampleBodies('big-build')
        .filter(({ signal }) => signal === 'traces')
        .slice(0, 3);
      const whole = Buffer.concat(all.map(({ body }) => body));
      const body = encoding === 'json' ? codecs.json.encode(codecs.protobuf.decode('traces', whole)) : whole;
      const { requests, itemCount } = await split('traces', body, 100_000, encoding);
      expect(requests.length).toBeGreaterThan(whole.length / 100_000);
      expect(Math.max(...requests.map(({ bytes }) => bytes.length))).toBeLessThanOrEqual(100_000);
      const items = itemsOf(codecs.protobuf.decode('traces', whole));
      expect(itemCount).toBe(items.length);
      expect(itemsOfAll('traces', requests)).toEqual(items);
    },
  );

  it('keeps every item of any request, but for spans without a trace id, which it counts', async () => {
    await fc.assert(
      fc.asyncProperty(
        arbitraryRequest,
        fc.integer({ min: 1, max: 400 }),
        fc.constantFrom('protobuf' as const, 'json' as const),
        async (request, maxBytes, encoding) => {
          const { signal } = request;
          const body = codecs[encoding].encode(request);
          const { requests, itemCount, rejectedCount } = await split(signal, body, maxBytes, encoding);
          const read = codecs[encoding].decode(signal, body);
          const kept = itemsOf(read, (id) => signal === 'logs' || isTraceId(id));
          expect(itemsOfAll(signal, requests)).toEqual(kept);
          expect([itemCount, rejectedCount]).toEqual([kept.length, itemsOf(read).length - kept.length]);
          for (const { traceId, bytes } of requests) {
            const ids = codecs.protobuf
              .decode(signal, bytes)
              .resources.flatMap(({ scopes }) =>
                scopes.flatMap(({ records }) =>
                  (records as readonly { readonly traceId: string }[]).map((one) => one.traceId),
                ),
              );
            for (const id of ids) expect(isTraceId(id) ? id : null).toBe(traceId);
          }
        },
      ),
    );
  });

  it.each(['protobuf', 'json'] as const)(
    'keeps equal log records in one message, however far apart they stand, so that the reader can count them (%s)',
    async (encoding) => {
      const record = (second: number, size: number) => ({
        timeUnixNano: String(BigInt(second) * 1_000_000_000n),
        traceId: 'ab'.repeat(16),
        spanId: 'cd'.repeat(8),
        body: { stringValue: `line ${second} ${'x'.repeat(size)}` },
      });
      const lists = [0, 1, 2].map((scope) => Array.from({ length: 200 }, (_, second) => record(second, 1_000 + scope)));
      const equal = [7, 8, 7, 9, 7].map((second) => record(second, 10));
      const scopeLogs = equal.map((one, index) => ({
        scope: { name: `scope ${index}` },
        logRecords: [one, ...(lists[index] ?? [])],
      }));
      const json = Buffer.from(JSON.stringify({ resourceLogs: [{ scopeLogs }] }));
      const read = codecs.json.decode('logs', json);
      const body = codecs[encoding].encode(read);
      const { requests } = await split('logs', body, 100_000, encoding);
      expect(Math.max(...requests.map(({ bytes }) => bytes.length))).toBeLessThanOrEqual(100_000);
      expect(itemsOfAll('logs', requests)).toEqual(itemsOf(read));
      const places = requests.flatMap(({ bytes }, index) =>
        itemsOf(codecs.protobuf.decode('logs', bytes)).flatMap((item) => (/line 7 x{10}"/.test(item) ? [index] : [])),
      );
      expect(places).toEqual([places[0], places[0], places[0]]);
    },
  );

  it('holds nothing of the body, whose memory goes to another one', async () => {
    const [{ signal, body } = { signal: 'traces' as const, body: Buffer.alloc(0) }] = sampleBodies('parse');
    const lent = Buffer.from(body);
    const { requests } = await split(signal, lent);
    lent.fill(0);
    expect(requests.map(({ bytes }) => bytes)).toEqual([body]);
  });

  it.each([
    ['no protobuf', Buffer.from('no protobuf')],
    ['a length beyond the end', Buffer.from([0x0a, 0xff, 0x7f])],
    [
      'a large body that ends too early',
      Buffer.concat([lengthDelimited(1, Buffer.alloc(2_000_000)), Buffer.from([0x0a, 9])]),
    ],
  ])('refuses %s', async (_what, body) => {
    await expect(split('traces', body)).rejects.toThrow(OtlpDecodeError);
  });

  it('refuses to repeat a large resource for very many traces', async () => {
    const span = (index: number) => {
      const id = Buffer.alloc(16, 1);
      id.writeUInt32BE(index, 0);
      return lengthDelimited(2, lengthDelimited(1, id));
    };
    const resource = lengthDelimited(1, lengthDelimited(9, Buffer.alloc(200_000)));
    const spans = Buffer.concat(Array.from({ length: 2_000 }, (_, index) => span(index + 1)));
    const body = lengthDelimited(1, Buffer.concat([resource, lengthDelimited(2, spans)]));
    await expect(split('traces', body)).rejects.toThrow(/repeated for each of its traces.*send smaller batches/);
  });
});
