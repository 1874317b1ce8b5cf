import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { JsonCodec } from '../../../src/otlp/json-codec.js';
import { ProtobufCodec } from '../../../src/otlp/protobuf-codec.js';
import type { BodyDecoder } from '../../../src/otlp/wire/wire-decoder.js';
import { DecodedBodies } from '../../../src/receiver/export-intake.js';
import type { Delivery } from '../../../src/record/record-batch.js';
import { passthroughBodies } from '../../fake/passthrough-decoder.js';

const BYTES = readFileSync('test/fixture/samples/build-mixed/otlp/002-traces.bin');
const BODY = { byteLength: BYTES.length, bytes: () => BYTES, release: () => {} };
const SENDER = { accountId: null, scope: {} };
const { traces, logs } = passthroughBodies(new ProtobufCodec());

test.each([
  ['durable', true],
  ['consumed', false],
] as const)(
  'a body resolves when it is %s; what was lent for it is given back when it is consumed',
  async (when, isEarly) => {
    const events: string[] = [];
    let end = () => {};
    const consumer = {
      consume(delivery: Delivery) {
        delivery.onDurable?.();
        return new Promise<void>((resolve) => {
          end = resolve;
        });
      },
    };
    const bodies = new DecodedBodies(
      { protobuf: { traces: lending(traces, events), logs }, json: passthroughBodies(new JsonCodec()) },
      consumer,
      when,
    );
    const consumed = bodies.consumeBody('traces', 'protobuf', BODY, SENDER).then(() => events.push('resolved'));
    await new Promise((resolve) => setImmediate(resolve));
    expect(events).toEqual(isEarly ? ['resolved'] : []);
    end();
    await consumed;
    await new Promise((resolve) => setImmediate(resolve));
    expect(events).toEqual(isEarly ? ['resolved', 'given back'] : ['given back', 'resolved']);
  },
);

/** A decoder that lends memory. */
function lending(decoder: BodyDecoder, events: string[]): BodyDecoder {
  return {
    async decode(body) {
      const decoded = await decoder.decode(body);
      return { ...decoded, delivery: { ...decoded.delivery, release: () => events.push('given back') } };
    },
  };
}
