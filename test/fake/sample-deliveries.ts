import { PublicAttributeSchema } from '../../src/otlp/attribute-schema.js';
import { JsonCodec } from '../../src/otlp/json-codec.js';
import { ProtobufCodec } from '../../src/otlp/protobuf-codec.js';
import { PublicSchema } from '../../src/otlp/public-schema.js';
import { WireDecoder } from '../../src/otlp/wire/wire-decoder.js';
import type { Delivery } from '../../src/record/record-batch.js';
import { OtlpRequestDecoder } from '../tool/otlp-request-decoder.js';
import { sampleBodies } from './sample-run.js';

const schema = new PublicAttributeSchema(PublicSchema.load());
const codecs = { protobuf: new ProtobufCodec(), json: new JsonCodec() };
const byObjects = new OtlpRequestDecoder(schema, codecs.json);
const straight = new WireDecoder('traces', schema, codecs);
const logs = new WireDecoder('logs', schema, codecs);

/** A sample's OTLP bodies as the receiver decodes them: into pages. */
export function* sampleDeliveries(run: string): Iterable<Delivery> {
  for (const { signal, body } of sampleBodies(run)) {
    yield (signal === 'traces' ? straight : logs).decode(body).delivery;
  }
}

/** The same as records, none of it in pages. */
export function* sampleDeliveriesOfRecords(run: string): Iterable<Delivery> {
  for (const { signal, body } of sampleBodies(run)) {
    yield byObjects.decode(codecs.protobuf.decode(signal, body)).delivery;
  }
}
