import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { expect, it } from 'vitest';
import { lengthDelimited } from '../../../../src/otlp/any-value.js';
import { JsonCodec } from '../../../../src/otlp/json-codec.js';
import { ProtobufCodec } from '../../../../src/otlp/protobuf-codec.js';
import { CellBatch } from '../../../../src/otlp/wire/item-chunk.js';
import { WireDecoder } from '../../../../src/otlp/wire/wire-decoder.js';

const LONG = 500_000;
const BODIES = 60;

const codecs = { protobuf: new ProtobufCodec(), json: new JsonCodec() };

const message = (number: number, ...fields: readonly Uint8Array[]) => lengthDelimited(number, Buffer.concat(fields));
const text = (number: number, value: string) => lengthDelimited(number, Buffer.from(value));
const attribute = (number: number, key: string, value: string) =>
  message(number, text(1, key), message(2, text(1, value)));
const times = Buffer.concat([Buffer.from([0x39]), Buffer.alloc(8, 1), Buffer.from([0x41]), Buffer.alloc(8, 2)]);
const ids = Buffer.concat([lengthDelimited(1, Buffer.alloc(16, 7)), lengthDelimited(2, Buffer.alloc(8, 9))]);
const request = (inResource: Uint8Array, inSpan: Uint8Array) => {
  const span = message(2, ids, text(5, 'Node evaluated (model.a.b)'), times, inSpan);
  return message(1, message(1, inResource), message(2, message(1, text(1, 'dbt-core')), span));
};
const long = (number: number) => `${number}`.padEnd(LONG, 'x');

it.each<[string, (number: number) => Buffer]>([
  ['names of attributes', (number) => request(Buffer.alloc(0), attribute(9, long(number), ''))],
  ['values of enums', (number) => request(Buffer.alloc(0), attribute(9, 'node_outcome', long(number)))],
  ['resources', (number) => request(attribute(1, 'host.name', long(number)), Buffer.alloc(0))],
])('does not keep long %s in memory', (_what, bodyOf) => {
  const fast = new WireDecoder('traces', codecs);
  const bytesKept = () => {
    const { heapUsed, external } = process.memoryUsage();
    return heapUsed + external;
  };
  const collect = collector();
  collect();
  const before = bytesKept();
  for (let number = 0; number < BODIES; number++) fast.decode(bodyOf(number)).delivery.release?.();
  collect();
  expect(bytesKept() - before).toBeLessThan((BODIES * LONG) / 3);
});

it('goes on decoding straight after ever new names of attributes', () => {
  const fast = new WireDecoder('traces', codecs);
  const isStraight = (name: string) => {
    const { batches, release } = fast.decode(request(Buffer.alloc(0), attribute(9, name, 'x'))).delivery;
    release?.();
    return batches[0] instanceof CellBatch;
  };
  for (let number = 0; number < 5_000; number++) expect(isStraight(`name_${number}`)).toBe(true);
  expect(isStraight('unique_id')).toBe(true);
});

function collector(): () => void {
  setFlagsFromString('--expose-gc');
  const collect = runInNewContext('gc') as () => void;
  return () => {
    for (let times = 0; times < 4; times++) collect();
  };
}
