import { nestedJson } from '../attribute-json.js';
import { modernEnumName } from '../spelling.js';
import { type FieldPlan, type FieldPlans, isSame, type TypePlan } from './field-plan.js';
import type { LineBuffer } from './line-buffer.js';
import { BOOL, INT, type SpanSlice, STRING } from './span-slice.js';
import { UNUSUAL } from './wire-cursor.js';

const TRUE = Buffer.from('true');
const FALSE = Buffer.from('false');
const COMMA = 0x2c;
const OPEN = 0x7b;
const CLOSE = 0x7d;
const QUOTE = 0x22;
const OPEN_LIST = 0x5b;
/** Modern names that are remembered for an enum's field. */
const MAX_KNOWN_VALUES = 64;
/** Attributes by which a start differs, or a spelling, in ways that only the general decoder knows. */
const SPECIAL = new Set(['node_skip_reason', 'test_outcome']);
const BRIDGE = 'run_bridge.';

/**
 * Writes a span's attributes as the engine's JSON, from OTLP's bytes to a line's bytes: nothing becomes a string on the
 * way that need not be looked at. Remembers where each attribute went, so that the start's can be copied from it.
 */
export class AttributesLine {
  private readonly plans: FieldPlan[] = [];
  /** Positions in the line: attribute i stands from `from[i]` to `to[i]`, without its comma. */
  private readonly from: number[] = [];
  private readonly to: number[] = [];
  private readonly order: number[] = [];
  private count = 0;

  constructor(private readonly fieldPlans: FieldPlans) {}

  /** Finds how each attribute is written, and their order. @throws UNUSUAL */
  plan(from: Buffer, span: SpanSlice, type: TypePlan): void {
    this.count = span.attributeCount;
    let isSorted = true;
    let previous = '';
    for (let index = 0; index < this.count; index++) {
      const key = this.fieldPlans.key(from, span.keyStart[index] as number, span.keyEnd[index] as number);
      if (SPECIAL.has(key.name) || key.name.startsWith(BRIDGE)) throw UNUSUAL;
      this.plans[index] = type.field(key);
      this.order[index] = index;
      if (key.name <= previous && index > 0) isSorted = false;
      previous = key.name;
    }
    if (!isSorted) this.sort();
  }

  /** Whether the planned span's attribute is this ASCII text. */
  isText(from: Buffer, span: SpanSlice, name: string, text: string): boolean {
    for (let index = 0; index < this.count; index++) {
      if (this.plans[index]?.key.name !== name) continue;
      const start = span.valueStart[index] as number;
      if (span.valueKind[index] !== STRING || (span.valueEnd[index] as number) - start !== text.length) return false;
      for (let at = 0; at < text.length; at++) if (from[start + at] !== text.charCodeAt(at)) return false;
      return true;
    }
    return false;
  }

  /** Writes `{…}` for the end. @throws UNUSUAL */
  writeEnd(out: LineBuffer, from: Buffer, span: SpanSlice): void {
    out.reserve(2);
    out.bytes[out.length++] = OPEN;
    for (let place = 0; place < this.count; place++) {
      const index = this.order[place] as number;
      const plan = this.plans[index] as FieldPlan;
      const start = span.valueStart[index] as number;
      const end = span.valueEnd[index] as number;
      out.reserve(plan.key.quoted.length + 32);
      if (place > 0) out.bytes[out.length++] = COMMA;
      this.from[index] = out.length;
      out.copy(plan.key.quoted);
      this.writeValue(out, from, span.valueKind[index] as number, start, end, plan);
      this.to[index] = out.length;
    }
    out.reserve(1);
    out.bytes[out.length++] = CLOSE;
  }

  /** Writes `{…}` for the start, from what `writeEnd` wrote. */
  writeStart(out: LineBuffer): void {
    out.bytes[out.length++] = OPEN;
    let isFirst = true;
    for (let place = 0; place < this.count; place++) {
      const index = this.order[place] as number;
      const plan = this.plans[index] as FieldPlan;
      if (plan.isEndOnly && !this.isKnownValue(out, index, plan)) continue;
      if (!isFirst) out.bytes[out.length++] = COMMA;
      isFirst = false;
      if (plan.atStart === null) out.repeat(this.from[index] as number, this.to[index] as number);
      else {
        out.copy(plan.key.quoted);
        out.copy(plan.atStart);
      }
    }
    out.bytes[out.length++] = CLOSE;
  }

  /** Whether what `writeEnd` wrote of an attribute is the value that starts have, too. */
  private isKnownValue(out: LineBuffer, index: number, plan: FieldPlan): boolean {
    if (plan.knownValue === null) return false;
    const start = (this.from[index] as number) + plan.key.quoted.length;
    return isSame(plan.knownValue, out.bytes, start, this.to[index] as number);
  }

  private writeValue(out: LineBuffer, from: Buffer, kind: number, start: number, end: number, plan: FieldPlan): void {
    if (kind === STRING) this.writeText(out, from, start, end, plan);
    else if (kind === BOOL) out.copy(from[start] === 0 ? FALSE : TRUE);
    else if (kind === INT) writeInteger(out, from, start, end, plan);
  }

  private writeText(out: LineBuffer, from: Buffer, start: number, end: number, plan: FieldPlan): void {
    const first = from[start];
    if (plan.kind === 'enum') {
      if (!isKnownValue(plan, from, start, end)) {
        out.utf8(JSON.stringify(modernName(plan, from, start, end)));
        return;
      }
    } else if (plan.kind === 'nested' || plan.kind === 'unknown') {
      if (end > start && (first === OPEN || first === OPEN_LIST)) {
        const text = from.toString('utf8', start, end);
        out.utf8(nestedJson(text) ?? JSON.stringify(text));
        return;
      }
    }
    out.jsonString(from, start, end);
  }

  private sort(): void {
    const { order, plans } = this;
    for (let index = 1; index < this.count; index++) {
      const moved = order[index] as number;
      const name = (plans[moved] as FieldPlan).key.name;
      let place = index;
      for (; place > 0 && (plans[order[place - 1] as number] as FieldPlan).key.name > name; place--) {
        order[place] = order[place - 1] as number;
      }
      order[place] = moved;
      if (place > 0 && (plans[order[place - 1] as number] as FieldPlan).key.name === name) throw UNUSUAL;
    }
  }
}

function isKnownValue(plan: FieldPlan, from: Buffer, start: number, end: number): boolean {
  for (const value of plan.knownValues) if (isSame(value, from, start, end)) return true;
  return false;
}

/** The modern name of an enum's value; one that is modern already is remembered. */
function modernName(plan: FieldPlan, from: Buffer, start: number, end: number): string {
  const value = from.toString('utf8', start, end);
  const modern = plan.field === undefined ? value : modernEnumName(value, plan.field);
  if (modern === value && plan.knownValues.length < MAX_KNOWN_VALUES) {
    plan.knownValues.push(Buffer.from(from.subarray(start, end)));
  }
  // `phase` decides the severity: an old spelling of it is left to the general decoder.
  if (modern !== value && plan.key.name === 'phase') throw UNUSUAL;
  return modern;
}

function writeInteger(out: LineBuffer, from: Buffer, start: number, end: number, plan: FieldPlan): void {
  // Small and not negative: everything that the engine sends as a number. An enum's number needs its name.
  if (end - start > 4 || plan.kind === 'enum') throw UNUSUAL;
  let value = 0;
  for (let index = start, shift = 0; index < end; index++, shift += 7)
    value |= ((from[index] as number) & 0x7f) << shift;
  const isText = plan.kind === 'int64';
  if (isText) out.bytes[out.length++] = QUOTE;
  out.ascii(String(value));
  if (isText) out.bytes[out.length++] = QUOTE;
}
