import { isDeepStrictEqual } from 'node:util';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { MAX_FIELDS, MAX_VALUE_LEVELS, OtlpDecodeError } from '../../../src/otlp/otlp-codec.js';
import { ProtobufCodec } from '../../../src/otlp/protobuf-codec.js';
import type { Signal } from '../../../src/record/record-batch.js';
import { arbitraryRequest } from './arbitrary-request.js';
import { sampleBodies } from './sample-bodies.js';

const codec = new ProtobufCodec();

describe('ProtobufCodec', () => {
  it('has samples to read', () => {
    expect(sampleBodies.length).toBeGreaterThanOrEqual(17);
  });

  it.each(sampleBodies)('writes what it read from $path, and reads the same again', ({ signal, body }) => {
    const request = codec.decode(signal, body);
    expect(request.resources.length).toBeGreaterThan(0);
    const again = codec.decode(signal, codec.encode(request));
    // `toEqual` takes long over hundreds of spans.
    if (!isDeepStrictEqual(again, request)) expect(again).toEqual(request);
  });

  it('reads what it writes, for any request', () => {
    fc.assert(
      fc.property(arbitraryRequest, (request) => {
        expect(codec.decode(request.signal, codec.encode(request))).toEqual(request);
      }),
    );
  });

  it('reads ids, times and 64-bit attributes to the last digit', () => {
    const sample = sampleBodies.find(({ path }) => path.startsWith('build-mixed/') && path.endsWith('traces.bin'));
    const request = codec.decode('traces', sample?.body ?? new Uint8Array());
    if (request.signal !== 'traces') throw new Error('not traces');
    const span = request.resources[0]?.scopes[0]?.records[0];
    expect(span?.traceId).toMatch(/^[0-9a-f]{32}$/);
    expect(span?.startTimeUnixNano).toBe(1795221792713263907n);
    expect(span?.kind).toBe(1);
    expect(span?.status).toEqual({ code: 1, message: '' });
  });

  it('takes an empty body as an empty request', () => {
    expect(codec.decode('logs', new Uint8Array())).toEqual({ signal: 'logs', resources: [] });
  });

  it('passes over unknown fields, and known ones of a wrong wire type', () => {
    expect(codec.decode('traces', bytes('98 06 01'))).toEqual({ signal: 'traces', resources: [] });
    expect(codec.decode('traces', bytes('08 01'))).toEqual({ signal: 'traces', resources: [] });
  });

  it('puts replacement characters where text is not UTF-8', () => {
    const request = codec.decode('traces', bytes('0a 04 1a 02 ff 41'));
    expect(request.resources[0]?.schemaUrl).toBe('\ufffdA');
  });

  it.each([
    ['a length beyond the body', '0a 05 01'],
    ['a length of gigabytes', '0a ff ff ff ff 07'],
    ['a varint without an end', '98 06 ff ff ff ff ff ff ff ff ff ff ff ff'],
    ['a tag without an end', 'ff ff ff ff ff ff'],
    ['a group without an end', '9b 06 08 01'],
    ['the reserved wire type 7', '0f'],
    ['field number 0', '00 01'],
  ])('refuses %s, saying what it expected', (_fault, hex) => {
    expect(() => codec.decode('traces', bytes(hex))).toThrow(OtlpDecodeError);
    expect(() => codec.decode('traces', bytes(hex))).toThrow(/^The body is not an OTLP traces request in protobuf: /);
  });

  it('reads values nested as deep as the limit and refuses deeper ones', () => {
    expect(() => codec.decode('logs', nestedLists(MAX_VALUE_LEVELS))).not.toThrow();
    expect(() => codec.decode('logs', nestedLists(MAX_VALUE_LEVELS + 1))).toThrow(OtlpDecodeError);
    expect(() => codec.decode('logs', nestedLists(20_000))).toThrow(OtlpDecodeError);
  });

  it('refuses millions of empty spans before they fill the memory', () => {
    const spans = Buffer.alloc(2 * (MAX_FIELDS + 1), bytes('12 00'));
    expect(() => codec.decode('traces', field(1, field(2, spans)))).toThrow('send smaller batches');
  });

  it('keeps its nerve with damaged bodies: a request or an OtlpDecodeError', () => {
    const small = sampleBodies.filter(({ body }) => body.length < 60_000);
    const change = fc.record({
      at: fc.nat(),
      byte: fc.nat(255),
      kind: fc.constantFrom('set', 'insert', 'remove', 'cut'),
    });
    fc.assert(
      fc.property(
        fc.constantFrom(...small),
        fc.array(change, { minLength: 1, maxLength: 8 }),
        ({ signal, body }, changes) => {
          decodeOrRefuse(signal, changes.reduce(damage, body));
        },
      ),
      { numRuns: 300 },
    );
  });

  it('keeps its nerve with random bodies', () => {
    fc.assert(
      fc.property(fc.constantFrom<Signal>('traces', 'logs'), fc.uint8Array({ maxLength: 300 }), decodeOrRefuse),
      { numRuns: 2000 },
    );
  });

  it('answers with an empty message when all was taken', () => {
    expect(codec.encodeResponse('traces', 0, '')).toHaveLength(0);
  });

  it('answers with the number of rejected records and the reason', () => {
    expect(Buffer.from(codec.encodeResponse('logs', 3, 'no')).toString('hex')).toBe('0a06080312026e6f');
    expect(Buffer.from(codec.encodeResponse('traces', 3, 'no')).toString('hex')).toBe('0a06080312026e6f');
  });

  it('writes a google.rpc.Status', () => {
    expect(Buffer.from(codec.encodeStatus(3, 'no')).toString('hex')).toBe('080312026e6f');
  });
});

function bytes(hex: string): Uint8Array {
  return Buffer.from(hex.replaceAll(' ', ''), 'hex');
}

function decodeOrRefuse(signal: Signal, body: Uint8Array): void {
  try {
    expect(codec.decode(signal, body).signal).toBe(signal);
  } catch (error) {
    expect(error).toBeInstanceOf(OtlpDecodeError);
  }
}

function damage(body: Uint8Array, change: { at: number; byte: number; kind: string }): Uint8Array {
  const at = change.at % (body.length + 1);
  const before = body.subarray(0, at);
  switch (change.kind) {
    case 'set':
      return Buffer.concat([before, Buffer.of(change.byte), body.subarray(at + 1)]);
    case 'insert':
      return Buffer.concat([before, Buffer.of(change.byte), body.subarray(at)]);
    case 'remove':
      return Buffer.concat([before, body.subarray(at + 1)]);
    default:
      return before;
  }
}

/** A logs request whose one record has a body of `levels` AnyValues, each but the innermost a list of one. */
function nestedLists(levels: number): Uint8Array {
  const heads: Buffer[] = [];
  let length = 0;
  // From the innermost out, each around all before it.
  const around = (number: number) => {
    const head = headOf(number, length);
    heads.push(head);
    length += head.length;
  };
  for (let level = 1; level < levels; level++) for (const number of [1, 5]) around(number);
  for (const number of [5, 2, 2, 1]) around(number);
  return Buffer.concat(heads.reverse());
}

function field(number: number, content: Buffer): Buffer {
  return Buffer.concat([headOf(number, content.length), content]);
}

/** Tag and length of a field. */
function headOf(number: number, contentLength: number): Buffer {
  const length: number[] = [];
  for (let rest = contentLength; ; rest >>>= 7) {
    length.push(rest > 127 ? (rest & 127) | 128 : rest);
    if (rest <= 127) break;
  }
  return Buffer.of((number << 3) | 2, ...length);
}
