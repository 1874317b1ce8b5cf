import type { SpanLink, TelemetryRecord } from '../../record/telemetry-record.js';
import { type AttributeCell, spreadAttributes } from './attribute-cells.js';
import { ColumnWriter, type EncodedChunk } from './column-writer.js';
import { ATTRIBUTE_KINDS, isAttributeColumn, LEAF_COLUMNS } from './leaf-column.js';
import { BOOLEAN, INT32, INT64, type PlainEncoding, SPAN_ID, TEXT } from './plain-encoding.js';

/** Puts a cell into a column inside `attributes`. */
type CellWriter = (row: number, cell: AttributeCell) => void;

interface AnyColumn {
  readonly bufferedBytes: number;
  finish(rowCount: number): EncodedChunk;
}

/** Spreads records over the columns of one row group; what it holds is compressed already, page by page. */
export class RowGroupWriter {
  rowCount = 0;
  private readonly columns = new Map<string, AnyColumn>();
  private readonly recordType = this.column('record_type', TEXT);
  private readonly traceId = this.column('trace_id', TEXT);
  private readonly spanId = this.column('span_id', SPAN_ID);
  private readonly eventId = this.column('event_id', TEXT);
  private readonly spanName = this.column('span_name', TEXT);
  private readonly parentSpanId = this.column('parent_span_id', SPAN_ID);
  private readonly linkTraceId = this.column('links.list.item.trace_id', TEXT);
  private readonly linkSpanId = this.column('links.list.item.span_id', SPAN_ID);
  private readonly linkPayload = this.column('links.list.item.json_payload', TEXT);
  private readonly startTime = this.column('start_time_unix_nano', INT64);
  private readonly endTime = this.column('end_time_unix_nano', INT64);
  private readonly time = this.column('time_unix_nano', INT64);
  private readonly severityNumber = this.column('severity_number', INT32);
  private readonly severityText = this.column('severity_text', TEXT);
  private readonly body = this.column('body', TEXT);
  private readonly statusCode = this.column('status_code', INT32);
  private readonly statusMessage = this.column('status_message', TEXT);
  private readonly eventType = this.column('event_type', TEXT);
  private readonly attributes = new Map<string, CellWriter>(
    Object.keys(ATTRIBUTE_KINDS).map((name) => [name, this.attributeColumn(name)]),
  );

  /** Bytes held until the row group is finished, roughly. */
  get bufferedBytes(): number {
    let bytes = 0;
    for (const column of this.columns.values()) bytes += column.bufferedBytes;
    return bytes;
  }

  append(record: TelemetryRecord): void {
    const row = this.rowCount++;
    this.recordType.append(row, record.recordType);
    this.traceId.append(row, record.traceId);
    if (record.spanId !== null) this.spanId.append(row, record.spanId);
    if (record.spanName !== null) this.spanName.append(row, record.spanName);
    this.severityNumber.append(row, toInt32(record.severityNumber));
    this.severityText.append(row, record.severityText);
    this.eventType.append(row, record.eventType);
    this.appendKind(row, record);
    spreadAttributes(record, (column, cell) => this.attributes.get(column)?.(row, cell));
  }

  /** The chunks of the row group in the file's column order. */
  finish(): EncodedChunk[] {
    return LEAF_COLUMNS.map(({ path }) => {
      const column = this.columns.get(path.join('.'));
      if (column === undefined) throw new Error(`no writer for column ${path.join('.')}`);
      return column.finish(this.rowCount);
    });
  }

  private appendKind(row: number, record: TelemetryRecord): void {
    if (record.recordType === 'LogRecord') {
      if (record.eventId !== null) this.eventId.append(row, record.eventId);
      this.time.append(row, record.timeUnixNano);
      this.body.append(row, record.body);
      return;
    }
    if (record.parentSpanId !== null) this.parentSpanId.append(row, record.parentSpanId);
    if (record.links !== null) this.appendLinks(row, record.links);
    this.startTime.append(row, record.startTimeUnixNano);
    if (record.recordType === 'SpanStart') return;
    this.endTime.append(row, record.endTimeUnixNano);
    if (record.status === null) return;
    this.statusCode.append(row, toUint32(record.status.code));
    if (record.status.message !== null) this.statusMessage.append(row, record.status.message);
  }

  private appendLinks(row: number, links: readonly SpanLink[]): void {
    this.linkTraceId.appendList(
      row,
      links.map((link) => link.traceId),
    );
    this.linkSpanId.appendList(
      row,
      links.map((link) => link.spanId),
    );
    this.linkPayload.appendList(
      row,
      links.map((link) => link.attributes.json),
    );
  }

  private attributeColumn(name: string): CellWriter {
    if (!isAttributeColumn(name)) throw new Error(`no column attributes.${name}`);
    const path = `attributes.${name}`;
    switch (ATTRIBUTE_KINDS[name]) {
      case 'text': {
        const column = this.column(path, TEXT);
        return (row, cell) => typeof cell === 'string' && column.append(row, cell);
      }
      case 'boolean': {
        const column = this.column(path, BOOLEAN);
        return (row, cell) => typeof cell === 'boolean' && column.append(row, cell);
      }
      case 'uint64': {
        const column = this.column(path, INT64);
        return (row, cell) => typeof cell === 'bigint' && column.append(row, cell);
      }
      case 'int32':
      case 'uint32': {
        const column = this.column(path, INT32);
        return (row, cell) => typeof cell === 'number' && column.append(row, cell);
      }
    }
  }

  private column<T>(path: string, encoding: PlainEncoding<T>): ColumnWriter<T> {
    const leaf = LEAF_COLUMNS.find((candidate) => candidate.path.join('.') === path);
    if (leaf === undefined) throw new Error(`the schema has no column ${path}`);
    const column = new ColumnWriter(leaf, encoding);
    this.columns.set(path, column);
    return column;
  }
}

/** A severity beyond 32 bits, which no program writes, becomes the nearest that the column can hold. */
function toInt32(value: number): number {
  return Math.max(-(2 ** 31), Math.min(2 ** 31 - 1, value));
}

/** The same for a status code, which is unsigned. */
function toUint32(value: number): number {
  return Math.max(0, Math.min(2 ** 32 - 1, value));
}
