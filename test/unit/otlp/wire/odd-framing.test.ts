import { describe, expect, it } from 'vitest';
import { lengthDelimited } from '../../../../src/otlp/any-value.js';
import { JsonCodec } from '../../../../src/otlp/json-codec.js';
import { ProtobufCodec } from '../../../../src/otlp/protobuf-codec.js';
import { WireDecoder } from '../../../../src/otlp/wire/wire-decoder.js';
import { misreading } from '../../../tool/protobufjs-reading.js';

const codecs = { protobuf: new ProtobufCodec(), json: new JsonCodec() };
const decoder = new WireDecoder('traces', codecs);

const message = (number: number, ...fields: readonly Uint8Array[]) => lengthDelimited(number, Buffer.concat(fields));
const text = (number: number, value: string) => lengthDelimited(number, Buffer.from(value));
const attribute = (key: string, value: string) => message(1, text(1, key), message(2, text(1, value)));
const span = (...more: readonly Uint8Array[]) => {
  const times = Buffer.concat([Buffer.from([0x39]), Buffer.alloc(8, 1), Buffer.from([0x41]), Buffer.alloc(8, 2)]);
  return message(2, lengthDelimited(1, Buffer.alloc(16, 7)), lengthDelimited(2, Buffer.alloc(8, 9)), times, ...more);
};
const parent = (id: Uint8Array) => lengthDelimited(4, id);
const odd = (value: Uint8Array) => message(9, text(1, 'sao_enabled'), lengthDelimited(2, value));
const scope = message(1, text(1, 'dbt-core'));
const resource = message(1, attribute('service.name', 'dbt-core'));

// Found by test/fuzz: protobuf allows each of these, though nobody's encoder writes them.
const BODIES: readonly (readonly [string, Buffer])[] = [
  ['a scope behind the spans', message(1, resource, message(2, span(), scope))],
  ['a scope in two parts', message(1, message(2, message(1, text(2, '2.0.0')), scope, span()))],
  ['a resource behind the spans', message(1, message(2, scope, span()), resource)],
  ['a resource in two parts', message(1, message(1, attribute('host.name', 'a')), resource, message(2, span()))],
  ['an unreadable resource without spans', message(1, message(1, Buffer.from([0x0a, 0x7f])))],
  ['an unreadable scope without spans', message(1, message(2, message(1, Buffer.from([0x0a, 0x7f]))))],
  ['a parent, and then none', message(1, message(2, scope, span(parent(Buffer.alloc(8, 3)), parent(Buffer.alloc(0)))))],
  ['a false of three bytes', message(1, message(2, scope, span(odd(Buffer.from('10808000', 'hex')))))],
  ['a kind of 12 bytes', message(1, message(2, scope, span(Buffer.from('30ffffffffffffffffff818000', 'hex'))))],
];

describe('a request framed as nobody frames it', () => {
  it.each(BODIES)('means what protobufjs reads: %s', (_name, body) => {
    expect(misreading('traces', body, (bytes) => decoder.decode(bytes))).toBeUndefined();
  });
});
