import { createDecoding } from '../app/create-decoding.js';
import { PublicSchema } from '../otlp/public-schema.js';
import type { OtlpReading } from '../source/otlp-json-file.js';

/** What it takes to read OTLP JSON lines. */
export function otlpReading(): OtlpReading {
  const { codecs, bodies } = createDecoding(PublicSchema.load());
  return { codec: codecs.json, bodies: bodies.json };
}
