import { BooleanColumn, type ColumnWriter, NumberColumn, type NumberKind, TextColumn } from './column.js';
import { type EncodedChunk, PageEncoder } from './page.js';
import { ATTRIBUTE_KINDS, type AttributeColumn, isAttributeColumn, LEAF_COLUMNS, type LeafColumn } from './schema.js';

/** A finished row group: its bytes as they lie in the file, and what the footer has to say about them. Plain data. */
export interface EncodedRowGroup {
  readonly rowCount: number;
  readonly bytes: Uint8Array<ArrayBuffer>;
  /** In the file's order; their bytes follow one another. */
  readonly chunks: readonly EncodedChunk[];
}

/** A column inside `attributes`, by the type of its values. */
export type AttributeWriter =
  | { readonly kind: 'text'; readonly column: TextColumn }
  | { readonly kind: 'uint64' | 'uint32' | 'int32'; readonly column: NumberColumn }
  | { readonly kind: 'boolean'; readonly column: BooleanColumn };

/** All columns of a row group; what they hold is compressed already, page by page. Used again for the next row group. */
export class RowGroupColumns {
  rowCount = 0;
  private readonly encoder = new PageEncoder();
  private readonly writers = new Map<string, ColumnWriter>();
  /** Those whose values wait. */
  private readonly waiting: (TextColumn | NumberColumn)[] = [];
  readonly recordType = this.text('record_type');
  readonly traceId = this.text('trace_id');
  readonly spanId = this.number('span_id', 'uint64');
  readonly eventId = this.text('event_id');
  readonly spanName = this.text('span_name');
  readonly parentSpanId = this.number('parent_span_id', 'uint64');
  readonly linkTraceId = this.text('links.list.item.trace_id');
  readonly linkSpanId = this.number('links.list.item.span_id', 'uint64');
  readonly linkPayload = this.text('links.list.item.json_payload');
  readonly startTime = this.number('start_time_unix_nano', 'uint64');
  readonly endTime = this.number('end_time_unix_nano', 'uint64');
  readonly time = this.number('time_unix_nano', 'uint64');
  readonly severityNumber = this.number('severity_number', 'int32');
  readonly severityText = this.text('severity_text');
  readonly body = this.text('body');
  readonly statusCode = this.number('status_code', 'uint32');
  readonly statusMessage = this.text('status_message');
  readonly eventType = this.text('event_type');
  readonly attributes: ReadonlyMap<AttributeColumn, AttributeWriter> = new Map(
    Object.keys(ATTRIBUTE_KINDS)
      .filter(isAttributeColumn)
      .map((name) => [name, this.attribute(name)]),
  );

  /** Bytes held until the row group is finished, roughly. */
  get bufferedBytes(): number {
    this.flush();
    let bytes = 0;
    for (const writer of this.writers.values()) bytes += writer.bufferedBytes;
    return bytes;
  }

  /** Writes the values that wait: the texts among them need not stand where they stood any longer. */
  flush(): void {
    for (const column of this.waiting) column.flush();
  }

  /** Ends the row group and begins the next. */
  finish(): EncodedRowGroup {
    this.flush();
    const { rowCount } = this;
    const parts: Uint8Array[] = [];
    const chunks = LEAF_COLUMNS.map((leaf) => {
      const writer = this.writers.get(leaf.path.join('.'));
      if (writer === undefined) throw new Error(`no writer for column ${leaf.path.join('.')}`);
      return writer.finish(rowCount, parts);
    });
    this.rowCount = 0;
    return { rowCount, bytes: joined(parts), chunks };
  }

  /** The column of a name inside `attributes`. */
  attributeWriter(name: AttributeColumn): AttributeWriter {
    const writer = this.attributes.get(name);
    if (writer === undefined) throw new Error(`no column attributes.${name}`);
    return writer;
  }

  private attribute(name: AttributeColumn): AttributeWriter {
    const path = `attributes.${name}`;
    const kind = ATTRIBUTE_KINDS[name];
    switch (kind) {
      case 'text':
        return { kind, column: this.text(path) };
      case 'boolean': {
        const leaf = leafOf(path);
        const column = new BooleanColumn(leaf, this.encoder);
        this.writers.set(path, column.writer);
        return { kind, column };
      }
      case 'uint64':
      case 'int32':
      case 'uint32':
        return { kind, column: this.number(path, kind) };
    }
  }

  private text(path: string): TextColumn {
    const column = new TextColumn(leafOf(path), this.encoder);
    this.waiting.push(column);
    this.writers.set(path, column.writer);
    return column;
  }

  private number(path: string, kind: NumberKind): NumberColumn {
    const column = new NumberColumn(leafOf(path), kind, this.encoder);
    this.waiting.push(column);
    this.writers.set(path, column.writer);
    return column;
  }
}

function leafOf(path: string): LeafColumn {
  const leaf = LEAF_COLUMNS.find((candidate) => candidate.path.join('.') === path);
  if (leaf === undefined) throw new Error(`the schema has no column ${path}`);
  return leaf;
}

/** In memory of its own, which can be handed to another thread. */
function joined(parts: readonly Uint8Array[]): Uint8Array<ArrayBuffer> {
  const bytes = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0));
  let at = 0;
  for (const part of parts) {
    bytes.set(part, at);
    at += part.length;
  }
  return bytes;
}

/** Limits of a row group. */
export interface ParquetWriterLimits {
  /** Default 100,000: the engine itself writes all rows into one. */
  readonly maxRowGroupRows: number;
  /** Bytes (compressed pages and dictionaries) at which a row group ends early. Default 64 MiB. */
  readonly maxRowGroupBytes: number;
}

export const DEFAULT_LIMITS: ParquetWriterLimits = {
  maxRowGroupRows: 100_000,
  maxRowGroupBytes: 64 * 1024 * 1024,
};

/** Rows after which the held bytes are counted. */
const SIZE_CHECK_ROWS = 1_000;

/** Whether a row group can take two more rows before it has to be asked whether it is full. */
export function hasRoomForTwo({ rowCount }: RowGroupColumns, { maxRowGroupRows }: ParquetWriterLimits): boolean {
  return rowCount + 2 <= maxRowGroupRows && (rowCount + 1) % SIZE_CHECK_ROWS !== 0;
}

/** Whether a row group has reached its limits; to be asked after each row, unless it had room for two. */
export function isGroupFull(columns: RowGroupColumns, limits: ParquetWriterLimits): boolean {
  const { rowCount } = columns;
  if (rowCount >= limits.maxRowGroupRows) return true;
  return rowCount % SIZE_CHECK_ROWS === 0 && columns.bufferedBytes >= limits.maxRowGroupBytes;
}
