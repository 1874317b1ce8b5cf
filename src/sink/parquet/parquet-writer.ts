import type { ColumnChunk, RowGroup } from 'hyparquet';
import { ByteWriter } from 'hyparquet-writer';
import { writeIndexes } from 'hyparquet-writer/src/indexes.js';
import { writeMetadata } from 'hyparquet-writer/src/metadata.js';
import type { TelemetryRecord } from '../../record/telemetry-record.js';
import { ReplacingFile } from '../replacing-file.js';
import { ARROW_SCHEMA } from './arrow-schema.js';
import type { EncodedChunk } from './column-writer.js';
import { SCHEMA } from './leaf-column.js';
import { RowGroupWriter } from './row-group-writer.js';

/** Limits of a row group. */
export interface ParquetWriterLimits {
  /** Default 100,000: the engine itself writes all rows into one. */
  readonly maxRowGroupRows: number;
  /** Bytes (compressed pages and dictionaries) at which a row group ends early. Default 64 MiB. */
  readonly maxRowGroupBytes: number;
}

const DEFAULT_LIMITS: ParquetWriterLimits = {
  maxRowGroupRows: 100_000,
  maxRowGroupBytes: 64 * 1024 * 1024,
};

/** What was written. */
export interface ParquetFileInfo {
  readonly rowCount: number;
  readonly rowGroupCount: number;
  readonly byteLength: number;
}

const MAGIC = Buffer.from('PAR1', 'latin1');
const CREATED_BY = 'run-bridge';
/** How long a least or greatest text in statistics may be; longer ones are cut as the format allows. In bytes. */
const STATISTICS_BYTES = 64;
/** Rows after which the held bytes are counted. */
const SIZE_CHECK_ROWS = 1_000;

/**
 * Writes records as a Parquet file with the engine's columns, types, encodings and Arrow schema. Holds one row group at a
 * time, compressed, so memory does not grow with the run. The file appears under its name only when it is complete.
 */
export class ParquetWriter {
  private readonly rowGroups: RowGroup[] = [];
  private readonly chunks: { chunk: ColumnChunk; pages: ReturnType<EncodedChunk['pagesAt']> }[] = [];
  private group = new RowGroupWriter();
  private rowCount = 0;

  /** Begins a file. @throws when it cannot be created. */
  static async create(path: string, limits: ParquetWriterLimits = DEFAULT_LIMITS): Promise<ParquetWriter> {
    const writer = new ParquetWriter(await ReplacingFile.create(path), limits);
    await writer.file.write(MAGIC);
    return writer;
  }

  private constructor(
    private readonly file: ReplacingFile,
    private readonly limits: ParquetWriterLimits,
  ) {}

  async append(records: Iterable<TelemetryRecord>): Promise<void> {
    for (const record of records) {
      this.group.append(record);
      if (this.isGroupFull()) await this.endRowGroup();
    }
  }

  /** Writes what is left and the footer, syncs and gives the file its name. */
  async close(): Promise<ParquetFileInfo> {
    if (this.group.rowCount > 0) await this.endRowGroup();
    await this.writeFooter();
    await this.file.commit();
    return { rowCount: this.rowCount, rowGroupCount: this.rowGroups.length, byteLength: this.file.length };
  }

  /** Gives up: removes the partial file, leaves an earlier file of that name alone. */
  async abort(): Promise<void> {
    await this.file.abort();
  }

  private isGroupFull(): boolean {
    const { rowCount } = this.group;
    if (rowCount >= this.limits.maxRowGroupRows) return true;
    return rowCount % SIZE_CHECK_ROWS === 0 && this.group.bufferedBytes >= this.limits.maxRowGroupBytes;
  }

  private async endRowGroup(): Promise<void> {
    const { group } = this;
    this.group = new RowGroupWriter();
    const start = this.file.length;
    const columns: ColumnChunk[] = [];
    for (const encoded of group.finish()) {
      const chunk = encoded.chunkAt(this.file.length);
      columns.push(chunk);
      this.chunks.push({ chunk, pages: encoded.pagesAt(this.file.length) });
      await this.file.write(...encoded.parts);
    }
    this.rowCount += group.rowCount;
    this.rowGroups.push({
      columns,
      total_byte_size: columns.reduce((sum, { meta_data }) => sum + (meta_data?.total_uncompressed_size ?? 0n), 0n),
      num_rows: BigInt(group.rowCount),
      file_offset: BigInt(start),
      total_compressed_size: BigInt(this.file.length - start),
    });
  }

  private async writeFooter(): Promise<void> {
    const footer = new ByteWriter(64 * 1024);
    // The library writes offsets relative to the file, so it is told where its bytes will lie.
    footer.offset = this.file.length;
    writeIndexes(
      footer,
      this.chunks.map(({ chunk, pages }) => ({ chunk, offsetIndex: { page_locations: pages } })),
    );
    writeMetadata(
      footer,
      {
        version: 1,
        schema: [...SCHEMA],
        num_rows: BigInt(this.rowCount),
        row_groups: this.rowGroups,
        key_value_metadata: [{ key: 'ARROW:schema', value: ARROW_SCHEMA }],
        created_by: CREATED_BY,
        metadata_length: 0,
      },
      STATISTICS_BYTES,
    );
    await this.file.write(footer.getBytes(), MAGIC);
  }
}
