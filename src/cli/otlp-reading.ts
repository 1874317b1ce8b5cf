import type { OtlpReading } from '../files/feature.js';
import { createDecoding } from '../otlp/create-decoding.js';
import { PublicSchema } from '../otlp/public-schema.js';

/** What it takes to read OTLP JSON lines. */
export function otlpReading(): OtlpReading {
  const { codecs, bodies } = createDecoding(PublicSchema.load());
  return { codec: codecs.json, bodies: bodies.json };
}
