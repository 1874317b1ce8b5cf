import { isDeepStrictEqual } from 'node:util';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { JsonCodec } from '../../../src/otlp/json-codec.js';
import { MAX_FIELDS, MAX_VALUE_LEVELS, OtlpDecodeError } from '../../../src/otlp/otlp-codec.js';
import { ProtobufCodec } from '../../../src/otlp/protobuf-codec.js';
import { arbitraryRequest } from './arbitrary-request.js';
import { sampleBodies } from './sample-bodies.js';

const codec = new JsonCodec();
const protobufCodec = new ProtobufCodec();

describe('JsonCodec', () => {
  it('reads what it writes, for any request', () => {
    fc.assert(
      fc.property(arbitraryRequest, (request) => {
        expect(codec.decode(request.signal, codec.encode(request))).toEqual(request);
      }),
    );
  });

  it.each(sampleBodies)('carries $path to JSON and back to protobuf unchanged', ({ signal, body }) => {
    const request = protobufCodec.decode(signal, body);
    const viaJson = codec.decode(signal, codec.encode(request));
    // `toEqual` takes long over hundreds of spans.
    if (!isDeepStrictEqual(viaJson, request)) expect(viaJson).toEqual(request);
    expect(Buffer.from(protobufCodec.encode(viaJson)).equals(protobufCodec.encode(request))).toBe(true);
  });

  it('writes one line with ids in hexadecimal, 64-bit numbers as strings and enums as integers', () => {
    const json = Buffer.from(codec.encode(decodeSpan(SPAN))).toString();
    expect(JSON.parse(json)).toEqual({
      resourceSpans: [{ resource: {}, scopeSpans: [{ scope: {}, spans: [JSON.parse(SPAN)] }] }],
    });
    expect(json).not.toContain('\n');
  });

  it('takes 64-bit numbers as strings and as numbers, to the last digit', () => {
    for (const time of ['"1795221792713263907"', '1795221792713263907', '18446744073709551615']) {
      const span = firstSpan(`{"startTimeUnixNano":${time}}`);
      expect(span?.startTimeUnixNano).toBe(BigInt(time.replaceAll('"', '')));
    }
    const value = firstValue('{"intValue": -9223372036854775808 }');
    expect(value).toBe(-9223372036854775808n);
  });

  it('leaves digits inside strings alone', () => {
    expect(firstValue('{"stringValue":"a\\": 12345678901234567890, \\\\"}')).toBe('a": 12345678901234567890, \\');
  });

  it('takes the names of the .proto files too', () => {
    const body = '{"resource_spans":[{"scope_spans":[{"spans":[{"trace_id":"AB","start_time_unix_nano":"7"}]}]}]}';
    const request = codec.decode('traces', Buffer.from(body));
    expect(request.resources[0]?.scopes[0]?.records[0]).toMatchObject({ traceId: 'ab', startTimeUnixNano: 7n });
  });

  it('takes null as unset and passes over unknown keys', () => {
    expect(firstSpan('{"name":null,"status":null,"attributes":null,"later":{"deep":[1]}}')).toEqual(firstSpan('{}'));
  });

  it.each([
    ['{"doubleValue":"NaN"}', Number.NaN],
    ['{"doubleValue":"-Infinity"}', Number.NEGATIVE_INFINITY],
    ['{"doubleValue":"1.5e3"}', 1500],
    ['{"doubleValue":2}', 2],
    ['{"doubleValue":100000000000000000000}', 1e20],
    ['{"intValue":"42"}', 42n],
    ['{"boolValue":false}', false],
    ['{"bytesValue":"AQI="}', new Uint8Array([1, 2])],
    ['{"arrayValue":{"values":[{"stringValue":"a"},{}]}}', ['a', null]],
    ['{"arrayValue":{}}', []],
    ['{"kvlistValue":{"values":[{"key":"k","value":{"intValue":1}}]}}', { entries: [{ key: 'k', value: 1n }] }],
    ['{}', null],
    ['null', null],
  ])('reads the value %s', (json, value) => {
    expect(firstValue(json)).toEqual(value);
  });

  it.each([
    ['{"name":5}', 'resourceSpans[0].scopeSpans[0].spans[0].name must be a string, not 5.'],
    ['{"kind":"x"}', 'resourceSpans[0].scopeSpans[0].spans[0].kind must be a 32-bit integer, not "x".'],
    ['{"kind":1.5}', 'spans[0].kind must be a 32-bit integer, not 1.5.'],
    ['{"flags":-1}', 'spans[0].flags must be an integer from 0 to 2^32-1, not -1.'],
    ['{"endTimeUnixNano":18446744073709551616}', 'spans[0].endTimeUnixNano must be an integer from 0 to 2^64-1'],
    ['{"traceId":"xyz"}', 'spans[0].traceId must be an id in hexadecimal, not "xyz".'],
    ['{"attributes":{}}', 'spans[0].attributes must be a list, not an object.'],
    ['{"attributes":[{"key":"a","value":{"boolValue":1}}]}', 'attributes[0].value.boolValue must be true or false'],
    [
      '{"attributes":[{"key":"a","value":{"bytesValue":"*"}}]}',
      'attributes[0].value.bytesValue must be bytes in base64',
    ],
    [
      '{"attributes":[{"key":"a","value":{"intValue":1,"boolValue":true}}]}',
      'value must be one value: it has several.',
    ],
    ['{"status":[]}', 'spans[0].status must be an object, not a list.'],
    ['3', 'resourceSpans[0].scopeSpans[0].spans[0] must be an object, not 3.'],
  ])('refuses the span %s and names the place', (span, message) => {
    expect(() => decodeSpan(span)).toThrow(OtlpDecodeError);
    expect(() => decodeSpan(span)).toThrow(message);
  });

  it.each(['', '[]', 'null', '{"resourceSpans":', '{"resourceSpans":3}', '\u0000'])('refuses the body %j', (body) => {
    expect(() => codec.decode('traces', Buffer.from(body))).toThrow(OtlpDecodeError);
  });

  it('reads values nested as deep as the limit and refuses deeper ones', () => {
    expect(() => firstValue(nestedLists(MAX_VALUE_LEVELS))).not.toThrow();
    expect(() => firstValue(nestedLists(MAX_VALUE_LEVELS + 1))).toThrow(OtlpDecodeError);
    expect(() => firstValue(nestedLists(200_000))).toThrow(OtlpDecodeError);
  });

  it('refuses millions of empty spans before they fill the memory', () => {
    expect(() => decodeSpan(`${'{},'.repeat(MAX_FIELDS)}{}`)).toThrow('send smaller batches');
  });

  it('keeps its nerve with damaged documents: a request or an OtlpDecodeError', () => {
    const documents = sampleBodies
      .filter(({ body }) => body.length < 60_000)
      .map(({ signal, body }) => ({ signal, json: Buffer.from(codec.encode(protobufCodec.decode(signal, body))) }));
    fc.assert(
      fc.property(
        fc.constantFrom(...documents),
        fc.nat(),
        fc.constantFrom('', '"', '{', ']', '1', '-', 'null', '\\', '\ud800', '9'.repeat(30)),
        fc.nat(40),
        ({ signal, json }, at, inserted, removedCount) => {
          const from = at % json.length;
          const tail = json.subarray(from + removedCount);
          decodeOrRefuse(signal, Buffer.concat([json.subarray(0, from), Buffer.from(inserted), tail]));
        },
      ),
      { numRuns: 300 },
    );
  });

  it('keeps its nerve with any JSON in the place of any value', () => {
    fc.assert(
      fc.property(
        fc.json(),
        fc.constantFrom('name', 'traceId', 'kind', 'attributes', 'events', 'status'),
        (json, key) => {
          decodeOrRefuse('traces', Buffer.from(spanBody(`{"${key}":${json}}`)));
        },
      ),
      { numRuns: 1000 },
    );
  });

  it('answers in JSON', () => {
    const text = (body: Uint8Array) => Buffer.from(body).toString();
    expect(text(codec.encodeResponse('traces', 0, ''))).toBe('{}');
    expect(text(codec.encodeResponse('traces', 2, 'no'))).toBe(
      '{"partialSuccess":{"rejectedSpans":"2","errorMessage":"no"}}',
    );
    expect(text(codec.encodeResponse('logs', 2, 'no'))).toBe(
      '{"partialSuccess":{"rejectedLogRecords":"2","errorMessage":"no"}}',
    );
    expect(text(codec.encodeStatus(3, 'no'))).toBe('{"code":3,"message":"no"}');
  });
});

const SPAN = `{"traceId":"5b8efff798038103d269b633813fc60c","spanId":"eee19b7ec3c1b174","parentSpanId":"eee19b7ec3c1b173","name":"I'm a server span","startTimeUnixNano":"1544712660000000000","endTimeUnixNano":"1544712661000000000","kind":2,"attributes":[{"key":"my.span.attr","value":{"stringValue":"some value"}}],"status":{"code":2}}`;

function spanBody(span: string): string {
  return `{"resourceSpans":[{"scopeSpans":[{"spans":[${span}]}]}]}`;
}

function decodeSpan(span: string) {
  return codec.decode('traces', Buffer.from(spanBody(span)));
}

function firstSpan(span: string) {
  const request = decodeSpan(span);
  return request.signal === 'traces' ? request.resources[0]?.scopes[0]?.records[0] : undefined;
}

function firstValue(value: string) {
  return firstSpan(`{"attributes":[{"key":"k","value":${value}}]}`)?.attributes[0]?.value;
}

function nestedLists(levels: number): string {
  return `${'{"arrayValue":{"values":['.repeat(levels - 1)}{}${']}}'.repeat(levels - 1)}`;
}

function decodeOrRefuse(signal: 'traces' | 'logs', body: Uint8Array): void {
  try {
    expect(codec.decode(signal, body).signal).toBe(signal);
  } catch (error) {
    expect(error).toBeInstanceOf(OtlpDecodeError);
  }
}
