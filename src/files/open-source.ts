import { stat } from 'node:fs/promises';
import { errorCode } from '../core/errors.js';
import { formatOfFile } from './file-format.js';
import { JsonlFile, unreadable } from './jsonl-file.js';
import { OtlpJsonFile, type OtlpReading } from './otlp-json-file.js';
import { ParquetFile } from './parquet-file.js';
import { type RecordSource, SourceError } from './record-source.js';

/**
 * The source for a path: JSONL, Parquet or OTLP JSON lines.
 * @throws SourceError when it is not there, is a folder, or its format is not known.
 */
export async function openSource(path: string, otlp: OtlpReading): Promise<RecordSource> {
  try {
    const found = await stat(path);
    if (found.isDirectory()) {
      throw new SourceError('unreadable', `${path} is a folder. Name the files in it, for example ${path}/*.jsonl`);
    }
    const sizeBytes = found.isFile() ? found.size : 0;
    switch (await formatOfFile(path, !found.isFile())) {
      case 'jsonl':
        return new JsonlFile(path, sizeBytes);
      case 'otlpJson':
        return new OtlpJsonFile(path, sizeBytes, otlp);
      case 'parquet':
        return new ParquetFile(path, sizeBytes);
    }
  } catch (cause) {
    throw sourceError(path, cause);
  }
}

function sourceError(path: string, cause: unknown): unknown {
  if (errorCode(cause) === 'ENOENT') {
    return new SourceError('notFound', `${path} does not exist. Check the path`, { cause });
  }
  return unreadable(path, cause);
}
