import type { Attributes } from '../record/attributes.js';
import { isJsonObject, type JsonObject, type JsonValue } from '../record/json.js';

/** A detail of a node: a field of its own, or (in Parquet's spelling) wrapped in `node_outcome_detail`. */
export function outcomeDetail(attributes: Attributes, field: string, wrapped: string): JsonObject | undefined {
  const detail = attributes.object(field);
  if (detail !== undefined) return detail;
  const value: JsonValue | undefined = attributes.object('node_outcome_detail')?.[wrapped];
  return isJsonObject(value) ? value : undefined;
}
