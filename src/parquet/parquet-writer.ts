import { stat } from 'node:fs/promises';
import type { ColumnChunk, FileMetaData, RowGroup } from 'hyparquet';
import { ByteWriter } from 'hyparquet-writer';
import { writeIndexes } from 'hyparquet-writer/src/indexes.js';
import { writeMetadata } from 'hyparquet-writer/src/metadata.js';
import { type DeliveryWriter, ReplacingFile } from '../log/delivery-writer.js';
import type { Delivery } from '../record/record-batch.js';
import type { TelemetryRecord } from '../record/telemetry-record.js';
import { LineRows } from './line-rows.js';
import { columnChunkAt, pageLocations } from './page.js';
import {
  DEFAULT_LIMITS,
  type EncodedRowGroup,
  isGroupFull,
  type ParquetWriterLimits,
  RowGroupColumns,
} from './row-group.js';
import { ARROW_SCHEMA, SCHEMA } from './schema.js';

/**
 * Writes records as a Parquet file with the engine's columns, types, encodings and Arrow schema. Holds one row group at a
 * time, compressed, so memory does not grow with the run. The file appears under its name only when it is complete.
 */
export class ParquetWriter {
  private readonly columns = new RowGroupColumns();
  private readonly rows = new LineRows(this.columns, { isModern: true, toModern: (record) => record });

  /** Begins a file. @throws when it cannot be created. */
  static async create(path: string, limits: ParquetWriterLimits = DEFAULT_LIMITS): Promise<ParquetWriter> {
    return new ParquetWriter(await ParquetOutput.create(path), limits);
  }

  /** Begins a file with the first row groups of the one that has the name now. @throws as `ParquetOutput.extend` */
  static async extend(path: string, metadata: FileMetaData, groupCount: number): Promise<ParquetWriter> {
    return new ParquetWriter(await ParquetOutput.extend(path, metadata, groupCount), DEFAULT_LIMITS);
  }

  private constructor(
    private readonly output: ParquetOutput,
    private readonly limits: ParquetWriterLimits,
  ) {}

  async append(records: Iterable<TelemetryRecord>): Promise<void> {
    for (const record of records) {
      this.rows.appendRecord(record);
      if (isGroupFull(this.columns, this.limits)) await this.output.write(this.columns.finish());
    }
    // Others may use the arena before more is appended.
    this.rows.flush();
  }

  /** Writes what is left as a row group. @returns how many row groups there are */
  async finishGroup(): Promise<number> {
    if (this.columns.rowCount > 0) await this.output.write(this.columns.finish());
    return this.output.rowGroupCount;
  }

  /** Writes what is left and the footer, syncs and gives the file its name. @param note as in `ParquetOutput.close` */
  async close(note?: string): Promise<ParquetFileInfo> {
    await this.finishGroup();
    return this.output.close(note);
  }

  /** Gives up: removes the partial file, leaves an earlier file of that name alone. */
  async abort(): Promise<void> {
    await this.output.abort();
  }
}

/** Writes the records of deliveries as one Parquet file. Telemetry of other services has no place there and is left out. */
export class ParquetDeliveryWriter implements DeliveryWriter {
  /** @throws when the file cannot be created. */
  static async create(path: string): Promise<ParquetDeliveryWriter> {
    return new ParquetDeliveryWriter(await ParquetWriter.create(path));
  }

  private constructor(private readonly writer: ParquetWriter) {}

  async write({ batches }: Delivery): Promise<void> {
    for (const { records } of batches) await this.writer.append(records);
  }

  async close(): Promise<void> {
    await this.writer.close();
  }

  abort(): Promise<void> {
    return this.writer.abort();
  }
}

/** What was written. */
interface ParquetFileInfo {
  readonly rowCount: number;
  readonly rowGroupCount: number;
  readonly byteLength: number;
}

const MAGIC = Buffer.from('PAR1', 'latin1');
const CREATED_BY = 'run-bridge';
/** How long a least or greatest text in statistics may be; longer ones are cut as the format allows. In bytes. */
const STATISTICS_BYTES = 64;

/** A Parquet file to which finished row groups are written. It appears under its name only when it is complete. */
export class ParquetOutput {
  private readonly rowGroups: RowGroup[] = [];
  private readonly chunks: { chunk: ColumnChunk; pages: ReturnType<typeof pageLocations> }[] = [];
  private rowCount = 0;

  /** Begins a file. @throws when it cannot be created. */
  static async create(path: string): Promise<ParquetOutput> {
    const output = new ParquetOutput(await ReplacingFile.create(path));
    try {
      await output.file.write(MAGIC);
    } catch (error) {
      await output.abort();
      throw error;
    }
    return output;
  }

  /**
   * Begins a file with row groups of the one that has the name now, as they are.
   * @param metadata of that file
   * @param groupCount how many of its row groups are kept
   * @throws when it cannot be read, or as `create`
   */
  static async extend(path: string, metadata: FileMetaData, groupCount: number): Promise<ParquetOutput> {
    const kept = metadata.row_groups.slice(0, groupCount);
    const next = metadata.row_groups[groupCount]?.file_offset;
    const { size } = await stat(path);
    // A row group's page index stands before the row group that was written after it.
    const keptBytes = next === undefined ? size - metadata.metadata_length - 8 : Number(next);
    const output = new ParquetOutput(await ReplacingFile.startingWith(path, keptBytes));
    output.rowGroups.push(...kept);
    output.rowCount = kept.reduce((sum, { num_rows }) => sum + Number(num_rows), 0);
    return output;
  }

  private constructor(private readonly file: ReplacingFile) {}

  /** Row groups so far. */
  get rowGroupCount(): number {
    return this.rowGroups.length;
  }

  async write(group: EncodedRowGroup): Promise<void> {
    const start = this.file.length;
    let offset = start;
    const columns = group.chunks.map((encoded) => {
      const chunk = columnChunkAt(encoded, offset);
      this.chunks.push({ chunk, pages: pageLocations(encoded, offset) });
      offset += encoded.byteLength;
      return chunk;
    });
    await this.file.write(group.bytes);
    this.rowCount += group.rowCount;
    this.rowGroups.push({
      columns,
      total_byte_size: columns.reduce((sum, { meta_data }) => sum + (meta_data?.total_uncompressed_size ?? 0n), 0n),
      num_rows: BigInt(group.rowCount),
      file_offset: BigInt(start),
      total_compressed_size: BigInt(this.file.length - start),
    });
  }

  /**
   * Writes the footer, syncs and gives the file its name.
   * @param note to stand behind the name of this program in the footer; keys and values there are the engine's alone
   */
  async close(note = ''): Promise<ParquetFileInfo> {
    await this.writeFooter(note);
    await this.file.commit();
    return { rowCount: this.rowCount, rowGroupCount: this.rowGroups.length, byteLength: this.file.length };
  }

  /** Gives up: removes the partial file, leaves an earlier file of that name alone. */
  async abort(): Promise<void> {
    await this.file.abort();
  }

  private async writeFooter(note: string): Promise<void> {
    const footer = new ByteWriter(64 * 1024);
    // The library writes offsets relative to the file, so it gets the offset at which its bytes will lie.
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
        created_by: CREATED_BY + note,
        metadata_length: 0,
      },
      STATISTICS_BYTES,
    );
    await this.file.write(footer.getBytes(), MAGIC);
  }
}
