import type { TelemetryRecord } from '../record/telemetry-record.js';
import { PublicSchema } from '../schema/public-schema.js';
import { PublicAttributeSchema } from './public-attribute-schema.js';
import { mayNeedSpelling, modernSpelling } from './spelling.js';

let schema: PublicAttributeSchema | undefined;

/** As `modernSpelling`, by the public schema, which is loaded for the first record that may not be in modern spelling. */
export function modernRecord<T extends TelemetryRecord>(record: T): T {
  if (!mayNeedSpelling(record)) return record;
  schema ??= new PublicAttributeSchema(PublicSchema.load());
  return modernSpelling(record, schema);
}
