import type { ByteCursor } from './byte-cursor.js';
import { ByteSource } from './byte-source.js';
import type { RowGroupColumns } from './row-group-columns.js';

const keys = ByteSource.of;
const TRACE_ID = keys('{"trace_id":"');
const SPAN_ID = keys('","span_id":"');
const ATTRIBUTES = keys('","attributes":');
const LIST = 0x5b;
const LIST_END = 0x5d;
const OBJECT = 0x7b;
const OBJECT_END = 0x7d;
const COMMA = 0x2c;

/** Where a link's values are in the line. */
interface LinkSlice {
  traceIdStart: number;
  high: number;
  low: number;
  attributesStart: number;
  attributesEnd: number;
}

/** The links of a span's line. */
export class LinkSlices {
  private readonly links: LinkSlice[] = [];
  private count = 0;

  /** Passes the list of links; `false` where it is not laid out as the engine's. */
  read(cursor: ByteCursor): boolean {
    this.count = 0;
    if (!cursor.passByte(LIST)) return false;
    if (cursor.bytes[cursor.at] === LIST_END) {
      cursor.at++;
      return true;
    }
    for (;;) {
      if (!this.readLink(cursor)) return false;
      const next = cursor.bytes[cursor.at++];
      if (next === LIST_END) return true;
      if (next !== COMMA) return false;
    }
  }

  /** Writes what was read last. */
  write({ linkTraceId, linkSpanId, linkPayload }: RowGroupColumns, row: number, source: ByteSource): void {
    for (const { writer } of [linkTraceId, linkSpanId, linkPayload]) {
      writer.beginRow(row);
      if (this.count === 0) writer.appendEmptyList();
    }
    for (let index = 0; index < this.count; index++) {
      const link = this.links[index];
      if (link === undefined) break;
      linkTraceId.appendItem(index, source, link.traceIdStart, link.traceIdStart + 32);
      linkSpanId.appendItem(index, link.high, link.low);
      linkPayload.appendItem(index, source, link.attributesStart, link.attributesEnd);
    }
    for (const column of [linkTraceId, linkSpanId, linkPayload]) column.endRow();
  }

  private readLink(cursor: ByteCursor): boolean {
    const link = this.next();
    if (!cursor.pass(TRACE_ID)) return false;
    link.traceIdStart = cursor.at;
    if (!cursor.hexDigits(32) || !cursor.pass(SPAN_ID) || !cursor.spanId() || !cursor.pass(ATTRIBUTES)) return false;
    link.high = cursor.high;
    link.low = cursor.low;
    link.attributesStart = cursor.at;
    if (cursor.bytes[cursor.at] !== OBJECT || !cursor.value()) return false;
    link.attributesEnd = cursor.at;
    return cursor.passByte(OBJECT_END);
  }

  private next(): LinkSlice {
    const index = this.count++;
    this.links[index] ??= { traceIdStart: 0, high: Number.NaN, low: Number.NaN, attributesStart: 0, attributesEnd: 0 };
    return this.links[index];
  }
}
