import { PublicAttributeSchema } from '../decode/attribute-schema.js';
import { OtlpRequestDecoder } from '../decode/otlp-request-decoder.js';
import type { BodyDecoder, RequestDecoder } from '../decode/request-decoder.js';
import { jsonBodies, LargeBodyDecoder, splitProtobuf } from '../decode/wire/large-body-decoder.js';
import { WireDecoder } from '../decode/wire/wire-decoder.js';
import { JsonCodec } from '../otlp/json-codec.js';
import type { OtlpCodec, OtlpEncoding } from '../otlp/otlp-codec.js';
import { ProtobufCodec } from '../otlp/protobuf-codec.js';
import type { Signal } from '../record/record-batch.js';
import type { PublicSchema } from '../schema/public-schema.js';

/** What makes records of OTLP. */
export interface Decoding {
  readonly codecs: Readonly<Record<OtlpEncoding, OtlpCodec>>;
  readonly decoder: RequestDecoder;
  /** Reads requests in protobuf from their bytes. */
  readonly protobuf: Readonly<Record<Signal, BodyDecoder>>;
  readonly json: Readonly<Record<Signal, BodyDecoder>>;
}

/** The general decoder, and the fast ones before it. */
export function createDecoding(publicSchema: PublicSchema): Decoding {
  const codecs = { protobuf: new ProtobufCodec(), json: new JsonCodec() };
  const schema = new PublicAttributeSchema(publicSchema);
  const decoder = new OtlpRequestDecoder(schema, codecs.json);
  const general = { codec: codecs.protobuf, decoder };
  const traces = new LargeBodyDecoder('traces', new WireDecoder('traces', schema, general), splitProtobuf);
  const logs = new LargeBodyDecoder('logs', new WireDecoder('logs', schema, general), splitProtobuf);
  return { codecs, decoder, protobuf: { traces, logs }, json: jsonBodies(codecs.json, decoder) };
}
