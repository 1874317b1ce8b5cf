import { PublicAttributeSchema } from '../decode/attribute-schema.js';
import { OtlpRequestDecoder } from '../decode/otlp-request-decoder.js';
import { JsonCodec } from '../otlp/json-codec.js';
import { PublicSchema } from '../schema/public-schema.js';
import type { OtlpReading } from '../source/otlp-json-file.js';

/** What it takes to read OTLP JSON lines. */
export function otlpReading(): OtlpReading {
  const codec = new JsonCodec();
  return { codec, decoder: new OtlpRequestDecoder(new PublicAttributeSchema(PublicSchema.load()), codec) };
}
