import { createDecoding } from '../app/create-decoding.js';
import type { OtlpReading } from '../files/otlp-json-file.js';
import { PublicSchema } from '../otlp/public-schema.js';

/** What it takes to read OTLP JSON lines. */
export function otlpReading(): OtlpReading {
  const { codecs, bodies } = createDecoding(PublicSchema.load());
  return { codec: codecs.json, bodies: bodies.json };
}
