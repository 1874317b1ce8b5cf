import { type FileHandle, open } from 'node:fs/promises';
import {
  type AsyncBuffer,
  type FileMetaData,
  parquetMetadataAsync,
  parquetReadObjects,
  type RowGroup,
} from 'hyparquet';
import { reasonOf } from '../component/reason-of.js';
import { checkPages } from './check-pages.js';
import type { Row } from './record-from-row.js';

/** A file cannot be read as Parquet; the message says what is wrong with it. */
export class ParquetReadError extends Error {
  override readonly name = 'ParquetReadError';
}

/** Rows of a file in order, and how far the reading has come. */
export interface RowChunk {
  readonly rows: readonly Row[];
  /** Number of the first of these rows, counted from 0. */
  readonly firstRow: number;
  /** The file's rows altogether. */
  readonly totalRows: number;
}

/** Rows read at a time where the file says in which page they are: half a page of the engine's and our own files. */
const CHUNK_ROWS = 10_000;
/** Without such an index a row group has to be read whole; the largest that is, in bytes before compression. */
const MAX_UNINDEXED_GROUP_BYTES = 512n * 1024n * 1024n;

/**
 * Reads a Parquet file of telemetry in chunks of at most 10,000 rows, which is what is held in memory, whatever the size of
 * its row groups (a group of one page a column counts as one chunk).
 * @throws ParquetReadError when the file is no Parquet file or is damaged; an empty file, which a killed engine leaves, says so.
 */
export async function* readParquetRows(path: string): AsyncGenerator<RowChunk> {
  const handle = await open(path, 'r');
  try {
    const file = await bufferOf(handle);
    const metadata = await readMetadata(path, file);
    const totalRows = Number(metadata.num_rows);
    for await (const { start, end } of rangesOf(path, file, metadata)) {
      const rows = await parsed(path, () =>
        parquetReadObjects({ file, metadata, rowStart: start, rowEnd: end, useOffsetIndex: true, parsers: PARSERS }),
      );
      yield { rows, firstRow: start, totalRows };
    }
  } finally {
    await handle.close();
  }
}

/** The footer of a file of telemetry, whatever it holds besides. @throws ParquetReadError, and what the file system throws */
export async function readParquetFooter(path: string): Promise<FileMetaData> {
  const handle = await open(path, 'r');
  try {
    return await readMetadata(path, await bufferOf(handle));
  } finally {
    await handle.close();
  }
}

const PARSERS = {
  timestampFromNanoseconds: (nanos: bigint) => nanos,
  timestampFromMicroseconds: (micros: bigint) => micros * 1_000n,
  timestampFromMilliseconds: (millis: bigint) => millis * 1_000_000n,
  stringFromBytes: (bytes: Uint8Array | undefined) =>
    bytes && Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString('utf8'),
};

async function bufferOf(handle: FileHandle): Promise<AsyncBuffer> {
  const { size } = await handle.stat();
  return {
    byteLength: size,
    async slice(start, end = size) {
      const length = Math.max(0, Math.min(end, size) - start);
      const bytes = new ArrayBuffer(length);
      let filled = 0;
      while (filled < length) {
        const { bytesRead } = await handle.read(new Uint8Array(bytes), filled, length - filled, start + filled);
        if (bytesRead === 0) throw new Error('the file became shorter while it was read');
        filled += bytesRead;
      }
      return bytes;
    },
  };
}

async function readMetadata(path: string, file: AsyncBuffer): Promise<FileMetaData> {
  if (file.byteLength === 0) {
    throw new ParquetReadError(
      `${path} is empty: the engine was killed before it wrote it. Use the run's JSONL instead`,
    );
  }
  const metadata = await parsed(path, () => parquetMetadataAsync(file, { parsers: PARSERS }));
  const names = new Set(metadata.schema.map((element) => element.name));
  for (const required of ['record_type', 'trace_id', 'event_type', 'attributes']) {
    if (!names.has(required)) {
      throw new ParquetReadError(`${path} is not a telemetry file of the engine: it has no column ${required}`);
    }
  }
  return metadata;
}

/** Stretches of rows to read at a time; a row group is looked at before its first one. */
async function* rangesOf(
  path: string,
  file: AsyncBuffer,
  metadata: FileMetaData,
): AsyncGenerator<{ start: number; end: number }> {
  let groupStart = 0;
  for (const group of metadata.row_groups) {
    await parsed(path, () => checkPages(file, group));
    const groupRows = Number(group.num_rows);
    const step = isIndexed(group) ? CHUNK_ROWS : groupRows;
    if (step > CHUNK_ROWS && group.total_byte_size > MAX_UNINDEXED_GROUP_BYTES) {
      throw new ParquetReadError(
        `${path} has a row group of ${group.total_byte_size} bytes without an offset index, too large to hold. Write the file again with smaller row groups`,
      );
    }
    for (let start = 0; start < groupRows; start += step) {
      yield { start: groupStart + start, end: groupStart + Math.min(start + step, groupRows) };
    }
    groupStart += groupRows;
  }
}

/** Whether some column says where its pages are; columns of a single page have no index with some writers. */
function isIndexed(group: RowGroup): boolean {
  return group.columns.some((column) => column.offset_index_offset !== undefined);
}

async function parsed<T>(path: string, read: () => Promise<T>): Promise<T> {
  try {
    return await read();
  } catch (cause) {
    const reason = reasonOf(cause);
    throw new ParquetReadError(`${path} cannot be read as Parquet: ${reason}. Check that the file is complete`, {
      cause,
    });
  }
}
