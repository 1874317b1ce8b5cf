import type { SpanLink, TelemetryRecord } from '../record/telemetry-record.js';
import { type AttributeCell, spreadAttributes } from './attribute-cells.js';
import type { AttributeColumn } from './leaf-column.js';
import type { RowGroupColumns } from './row-group-columns.js';

/** Writes records as rows: the general way, which takes whatever a record can hold. */
export class RecordRows {
  constructor(private readonly columns: RowGroupColumns) {}

  append(record: TelemetryRecord): void {
    const { columns } = this;
    const row = columns.rowCount++;
    columns.recordType.appendText(row, record.recordType);
    columns.traceId.appendText(row, record.traceId);
    if (record.spanId !== null) columns.spanId.appendHex(row, record.spanId);
    if (record.spanName !== null) columns.spanName.appendText(row, record.spanName);
    columns.severityNumber.appendNumber(row, toInt32(record.severityNumber));
    columns.severityText.appendText(row, record.severityText);
    columns.eventType.appendText(row, record.eventType);
    this.appendKind(row, record);
    spreadAttributes(record, (column, cell) => this.appendCell(row, column, cell));
  }

  private appendKind(row: number, record: TelemetryRecord): void {
    const { columns } = this;
    if (record.recordType === 'LogRecord') {
      if (record.eventId !== null) columns.eventId.appendText(row, record.eventId);
      columns.time.appendBigint(row, record.timeUnixNano);
      columns.body.appendText(row, record.body);
      return;
    }
    if (record.parentSpanId !== null) columns.parentSpanId.appendHex(row, record.parentSpanId);
    if (record.links !== null) this.appendLinks(row, record.links);
    columns.startTime.appendBigint(row, record.startTimeUnixNano);
    if (record.recordType === 'SpanStart') return;
    columns.endTime.appendBigint(row, record.endTimeUnixNano);
    if (record.status === null) return;
    columns.statusCode.appendNumber(row, toUint32(record.status.code));
    if (record.status.message !== null) columns.statusMessage.appendText(row, record.status.message);
  }

  private appendLinks(row: number, links: readonly SpanLink[]): void {
    const { linkTraceId, linkSpanId, linkPayload } = this.columns;
    for (const { writer } of [linkTraceId, linkSpanId, linkPayload]) {
      writer.beginRow(row);
      if (links.length === 0) writer.appendEmptyList();
    }
    for (const [index, link] of links.entries()) {
      linkTraceId.appendItemText(index, link.traceId);
      linkSpanId.appendItemHex(index, link.spanId);
      linkPayload.appendItemText(index, link.attributes.json);
    }
    for (const column of [linkTraceId, linkSpanId, linkPayload]) column.endRow();
  }

  private appendCell(row: number, name: AttributeColumn, cell: AttributeCell): void {
    const writer = this.columns.attributeWriter(name);
    switch (writer.kind) {
      case 'text':
        if (typeof cell === 'string') writer.column.appendText(row, cell);
        break;
      case 'boolean':
        if (typeof cell === 'boolean') writer.column.append(row, cell);
        break;
      case 'uint64':
        if (typeof cell === 'bigint') writer.column.appendBigint(row, cell);
        break;
      case 'int32':
      case 'uint32':
        if (typeof cell === 'number') writer.column.appendNumber(row, cell);
        break;
    }
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
