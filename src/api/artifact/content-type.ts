import { extname } from 'node:path';

const TEXT = 'text/plain; charset=utf-8';
const TYPES: Readonly<Record<string, string>> = {
  '.parquet': 'application/x-parquet',
  '.json': 'application/json',
  '.jsonl': 'application/x-ndjson',
  '.sql': TEXT,
  '.log': TEXT,
  '.txt': TEXT,
  '.yml': TEXT,
  '.yaml': TEXT,
  '.csv': 'text/csv; charset=utf-8',
};

const UNKNOWN = 'application/octet-stream';

/** Every type that an artifact may have. */
export const ARTIFACT_CONTENT_TYPES: readonly string[] = [...new Set([UNKNOWN, ...Object.values(TYPES)])];

/** The type of an artifact by its name. What a browser would run (HTML, SVG, scripts) is bytes like everything unknown. */
export function contentTypeOf(path: string): string {
  return TYPES[extname(path).toLowerCase()] ?? UNKNOWN;
}
