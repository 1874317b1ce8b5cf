import { fieldTexts } from '../record/record-line.js';
import type { SpanLink, TelemetryRecord } from '../record/telemetry-record.js';
import { ByteBuffer } from './bytes.js';
import type { ConstantText, NumberColumn, TextColumn } from './column.js';
import type { EventPlan, EventPlans, PayloadField } from './event-plan.js';
import { isDebugMap, ONEOF_FIELD, orderedJson } from './message-layout.js';
import type { AttributeWriter, RowGroupColumns } from './row-group.js';

/** Writes records of any look as rows: what is right, and slow. */
export class PlainRows {
  private readonly bytes = new ByteBuffer(4096);

  constructor(
    private readonly columns: RowGroupColumns,
    private readonly plans: EventPlans,
  ) {}

  write(record: TelemetryRecord): void {
    const { columns } = this;
    const plan = this.plans.of(record.eventType);
    const row = columns.rowCount++;
    columns.recordType.appendConstant(row, 1, this.plans.recordTypes[record.recordType]);
    this.text(columns.traceId, row, record.traceId);
    appendId(columns.spanId, row, record.spanId);
    this.text(columns.spanName, row, record.spanName);
    columns.severityNumber.append(row, 1, 0, within(record.severityNumber, -(2 ** 31), 2 ** 31 - 1));
    this.text(columns.severityText, row, record.severityText);
    columns.eventType.appendConstant(row, 1, plan.eventType);
    if (record.recordType === 'LogRecord') {
      this.text(columns.eventId, row, record.eventId);
      columns.time.append(row, 1, ...halvesOf(record.timeUnixNano));
      this.text(columns.body, row, record.body);
    } else {
      appendId(columns.parentSpanId, row, record.parentSpanId);
      if (record.links !== null) this.links(row, record.links);
      columns.startTime.append(row, 1, ...halvesOf(record.startTimeUnixNano));
    }
    if (record.recordType === 'SpanEnd') {
      columns.endTime.append(row, 1, ...halvesOf(record.endTimeUnixNano));
      const { status } = record;
      if (status !== null) columns.statusCode.append(row, 1, 0, within(status.code, 0, 2 ** 32 - 1) | 0);
      this.text(columns.statusMessage, row, status?.message ?? null);
    }
    this.attributes(plan, row, withoutBlanks(record.attributes.json));
  }

  private attributes(plan: EventPlan, row: number, json: string): void {
    if (plan.isWhole) {
      this.text(plan.payloadColumn, row, plan.order === undefined ? json : orderedJson(json, plan.order));
      return;
    }
    const names = new Set([...plan.columns, ...plan.payload].map(({ name }) => name));
    const known = new Map<string, string>();
    const others: string[] = [];
    for (const { name, json: value } of fieldTexts(json)) {
      if (names.has(name)) known.set(name, value);
      else others.push(`${JSON.stringify(name)}:${value}`);
    }
    // A field that is null counts as left out.
    for (const [name, value] of known) if (value === 'null') known.delete(name);
    const misfits: string[] = [];
    for (const { name, writer, zero } of plan.columns) {
      const value = known.get(name);
      if (value === undefined) writeZero(writer, zero, row);
      else if (!this.cell(writer, row, value)) misfits.push(`"${name}":${value}`);
    }
    plan.constant?.column.appendConstant(row, 1, plan.constant.text);
    const payload = [...payloadOf(plan, known, misfits), ...misfits, ...others];
    if (payload.length > 0 || plan.isPayloadAlways) this.text(plan.payloadColumn, row, `{${payload.join()}}`);
  }

  /** @returns whether the value is one of the column's kind */
  private cell(writer: AttributeWriter, row: number, json: string): boolean {
    if (writer.kind === 'text') {
      if (!json.startsWith('"')) return false;
      this.text(writer.column, row, JSON.parse(json));
    } else if (writer.kind === 'boolean') {
      if (json !== 'true' && json !== 'false') return false;
      writer.column.append(row, 1, json === 'true');
    } else {
      const number = writer.kind === 'uint64' ? uint64Of(json) : smallNumberOf(json, writer.kind);
      if (number === undefined) return false;
      writer.column.append(row, 1, ...halvesOf(number));
    }
    return true;
  }

  private links(row: number, links: readonly SpanLink[]): void {
    const { linkTraceId, linkSpanId, linkPayload } = this.columns;
    for (const { writer } of [linkTraceId, linkSpanId, linkPayload]) {
      writer.beginList(row);
      if (links.length === 0) writer.appendEmptyList();
    }
    for (const [index, { traceId, spanId, attributes }] of links.entries()) {
      linkTraceId.appendItem(index, this.put(traceId).source, 0, this.bytes.length);
      const [high, low] = halvesOf(BigInt(`0x${spanId}`));
      linkSpanId.appendItem(index, high, low);
      linkPayload.appendItem(index, this.put(withoutBlanks(attributes.json)).source, 0, this.bytes.length);
    }
    for (const column of [linkTraceId, linkSpanId, linkPayload]) column.endList(row);
  }

  private text(column: TextColumn, row: number, text: string | null): void {
    if (text !== null) column.appendBytes(row, this.put(text));
  }

  private put(text: string): ByteBuffer {
    this.bytes.clear();
    this.bytes.appendText(text);
    return this.bytes;
  }
}

const QUOTE = 0x22;

function appendId(column: NumberColumn, row: number, id: string | null): void {
  if (id !== null) column.append(row, 1, ...halvesOf(BigInt(`0x${id}`)));
}

function payloadOf(plan: EventPlan, known: ReadonlyMap<string, string>, misfits: string[]): readonly string[] {
  const payload: string[] = [];
  let member: PayloadField | undefined;
  for (const field of plan.payload) {
    const value = known.get(field.name);
    if (field.to === 'payload') {
      // The members' own name, which no message has.
      const text = value ?? field.zero;
      if (text === undefined || (member !== undefined && field.name === ONEOF_FIELD)) continue;
      payload.push(field.key + (field.isUint64 ? unquotedCount(text) : text));
      continue;
    }
    if (value === undefined) continue;
    if (field.to === 'map' && isDebugMap(value)) {
      // Its entries, without its braces.
      if (value !== '{}') payload.push(value.slice(1, -1));
    } else if (field.to === 'oneof' && member === undefined && value.startsWith('{')) {
      member = field;
      payload.push(`${field.key}${field.order === undefined ? value : orderedJson(value, field.order)}}`);
    } else {
      // No message can hold a second member.
      misfits.push(`"${field.name}":${value}`);
    }
  }
  return payload;
}

/** A count is a number in the payload as long as every reader holds it exactly. */
function unquotedCount(json: string): string {
  const digits = COUNT.exec(json)?.[1];
  return digits !== undefined && Number.isSafeInteger(Number(digits)) ? digits : json;
}

/** Needless zeros make it a text. */
const COUNT = /^"(0|[1-9]\d*)"$/;

function uint64Of(json: string): bigint | undefined {
  const digits = COUNT.exec(json)?.[1];
  if (digits !== undefined) return digits.length <= 20 && BigInt(digits) < 2n ** 64n ? BigInt(digits) : undefined;
  const number = numberOf(json);
  return number !== undefined && number >= 0 && Number.isSafeInteger(number) ? BigInt(number) : undefined;
}

function smallNumberOf(json: string, kind: 'int32' | 'uint32'): bigint | undefined {
  const number = numberOf(json);
  if (number === undefined || number !== (kind === 'uint32' ? number >>> 0 : number | 0)) return undefined;
  return BigInt(number >>> 0);
}

function numberOf(json: string): number | undefined {
  return /^[-\d]/.test(json) ? Number(json) : undefined;
}

function writeZero(writer: AttributeWriter, zero: ConstantText | number | undefined, row: number): void {
  if (writer.kind === 'text' && typeof zero === 'object') writer.column.appendConstant(row, 1, zero);
  else if ((writer.kind === 'int32' || writer.kind === 'uint32') && typeof zero === 'number') {
    writer.column.append(row, 1, 0, zero);
  }
}

// Integers of 32 bits: V8 has the least one of a bigint as a number of another kind, and would then make objects of all halves.
function halvesOf(number: bigint): readonly [high: number, low: number] {
  return [Number(number >> 32n) | 0, Number(BigInt.asIntN(32, number)) | 0];
}

/** A number beyond the column's, which no program writes, becomes the nearest that it can hold. */
function within(value: number, least: number, greatest: number): number {
  return Math.max(least, Math.min(greatest, value));
}

/** A JSON text without the blanks that are not in a string. */
function withoutBlanks(json: string): string {
  let text = '';
  let from = 0;
  let isInString = false;
  for (let at = 0; at < json.length; at++) {
    const code = json.charCodeAt(at);
    if (code === QUOTE) {
      isInString = !isInString;
    } else if (isInString) {
      if (code === 0x5c) at++;
    } else if (code === 0x20 || code === 0x09 || code === 0x0a || code === 0x0d) {
      text += json.slice(from, at);
      from = at + 1;
    }
  }
  return from === 0 ? json : text + json.slice(from);
}
