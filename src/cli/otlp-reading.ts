import { createDecoding } from '../otlp/create-decoding.js';
import type { EngineSightings } from '../otlp/engine-sightings.js';

/** What it takes to read OTLP JSON lines. @param engineNames what the engine is called beside its known names */
export function otlpReading(engineNames: readonly string[], sightings?: EngineSightings) {
  const { codecs, bodies } = createDecoding({ engineNames, sightings });
  return { codec: codecs.json, bodies: bodies.json };
}
