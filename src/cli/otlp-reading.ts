import type { OtlpReading } from '../files/feature.js';
import { createDecoding } from '../otlp/create-decoding.js';
import type { EngineSightings } from '../otlp/engine-sightings.js';
import { PublicSchema } from '../otlp/public-schema.js';

/** What it takes to read OTLP JSON lines. @param engineNames what the engine is called beside its known names */
export function otlpReading(engineNames: readonly string[], sightings?: EngineSightings): OtlpReading {
  const { codecs, bodies } = createDecoding(PublicSchema.load(), { engineNames, sightings });
  return { codec: codecs.json, bodies: bodies.json };
}
