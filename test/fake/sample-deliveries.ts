import { PublicAttributeSchema } from '../../src/decode/attribute-schema.js';
import { OtlpRequestDecoder } from '../../src/decode/otlp-request-decoder.js';
import { WireDecoder } from '../../src/decode/wire/wire-decoder.js';
import { JsonCodec } from '../../src/otlp/json-codec.js';
import { ProtobufCodec } from '../../src/otlp/protobuf-codec.js';
import type { Delivery } from '../../src/record/record-batch.js';
import { PublicSchema } from '../../src/schema/public-schema.js';
import { sampleBodies } from './sample-run.js';

const schema = new PublicAttributeSchema(PublicSchema.load());
const general = { codec: new ProtobufCodec(), decoder: new OtlpRequestDecoder(schema, new JsonCodec()) };
const straight = new WireDecoder('traces', schema, general);
const logs = new WireDecoder('logs', schema, general);

/** A sample's OTLP bodies as the receiver decodes them: spans straight from the wire, into pages. */
export function* sampleDeliveries(run: string): Iterable<Delivery> {
  for (const { signal, body } of sampleBodies(run)) {
    yield (signal === 'traces' ? straight : logs).decode(body).delivery;
  }
}

/** The same, all of it decoded by the general decoder. */
export function* sampleDeliveriesOfRecords(run: string): Iterable<Delivery> {
  for (const { signal, body } of sampleBodies(run)) {
    yield general.decoder.decode(general.codec.decode(signal, body)).delivery;
  }
}
