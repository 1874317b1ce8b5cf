import { open } from 'node:fs/promises';
import { compressionOf, readBytes, uncompressedName } from './read-bytes.js';
import { SourceError } from './record-source.js';

/** The public formats of a run's telemetry. */
export type FileFormat = 'jsonl' | 'parquet' | 'otlpJson';

const ENDINGS: readonly (readonly [RegExp, FileFormat])[] = [
  [/\.otlp\.(jsonl|json|ndjson)$/i, 'otlpJson'],
  [/\.(jsonl|json|ndjson)$/i, 'jsonl'],
  [/\.parquet$/i, 'parquet'],
];

/** The known endings, for messages. */
const KNOWN_ENDINGS =
  ".jsonl, .ndjson or .json (the engine's JSONL), .otlp.jsonl or .otlp.json (OTLP JSON lines), .parquet";

/** How many bytes of a file are read to distinguish JSONL from OTLP JSON lines. */
const HEAD_BYTES = 64 * 1024;

/**
 * Returns the format that a file name stands for.
 * @throws SourceError for an unknown ending
 */
export function formatByEnding(path: string): FileFormat {
  const format = ENDINGS.find(([ending]) => ending.test(path))?.[1];
  if (format === undefined) {
    throw new SourceError('unknownFormat', `cannot tell the format of ${path}: its name must end in ${KNOWN_ENDINGS}`);
  }
  return format;
}

/**
 * Returns the format of an existing file: by its ending, and for JSON lines by the keys of the first line, since other programs write OTLP as `.json` and `.jsonl`, too.
 * @throws SourceError for an unknown ending; errors of the file system if the file cannot be read
 */
export async function formatOfFile(path: string, isPipe: boolean): Promise<FileFormat> {
  const format = formatByEnding(uncompressedName(path));
  if (format === 'parquet' && compressionOf(path) !== undefined) {
    throw new SourceError('unknownFormat', `${path} is packed Parquet, which cannot be read in order. Unpack it first`);
  }
  // Bytes read from a pipe could not be read again.
  if (format !== 'jsonl' || isPipe) return format;
  const head = (await headOf(path)).toString('utf8').trimStart();
  return /^\{\s*"resource_?(spans|logs|metrics)"/i.test(head) ? 'otlpJson' : 'jsonl';
}

async function headOf(path: string): Promise<Buffer> {
  if (compressionOf(path) !== undefined) {
    for await (const { bytes } of readBytes(path, new AbortController().signal)) {
      return Buffer.from(bytes.subarray(0, HEAD_BYTES));
    }
    return Buffer.alloc(0);
  }
  const file = await open(path, 'r');
  try {
    const { buffer, bytesRead } = await file.read(Buffer.alloc(HEAD_BYTES), 0, HEAD_BYTES, 0);
    return buffer.subarray(0, bytesRead);
  } finally {
    await file.close();
  }
}
