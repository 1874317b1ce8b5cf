import { constant, copyText, isSame, putText, type Range, REGION, view } from '../record/arena.js';
import { ATTRIBUTE_CELLS, Attribute, cell, HEADER } from '../record/cells.js';
import { CLOSE, COMMA, OPEN, OPEN_LIST, QUOTE, stringEnd } from '../record/json-line.js';
import { type KnownText, TextMemo, texts } from '../record/texts.js';
import type { ConstantText } from './column.js';
import { constantText, type EventPlan, type PayloadField } from './event-plan.js';
import { DEBUG_TYPES, type KeyOrder, ONEOF_FIELD, orderedJson } from './message-layout.js';

/** An attribute of a row: one that the record has at an index, or one that a start has and its end has otherwise. */
export interface RowAttribute {
  readonly name: string;
  /** One of `Form`. */
  readonly form: number;
  /** -1 for one whose value is known. */
  readonly index: number;
  /** That value, as JSON. */
  readonly json: string;
}

/** What is written of an attribute, behind a constant. */
const Use = {
  /** Nothing more. */
  none: 0,
  /** Its name and its value as they stand in the line. */
  member: 1,
  /** Its text. */
  text: 2,
  /** Its text, and a brace. */
  detail: 3,
  /** Its text without its braces, where there is something between them. */
  entries: 4,
} as const;

interface Part {
  readonly head: Range;
  /** One of `Use`. */
  readonly use: number;
  readonly index: number;
  readonly order: KeyOrder | undefined;
}

/** Where the attributes of a record stand as JSON. */
export interface AttributeOffsets {
  readonly start: number;
  readonly end: number;
  /** Where each begins there, see `LineScanner`. */
  readonly offsets: Int32Array;
}

const NOTHING: Range = { at: 0, length: 0 };

/** Where texts are written that do not stand in a line so, and how many bytes of them there are at most, but for those of one line. */
const ROOM = REGION.scratch + 4 * 1024 * 1024;
const ROOM_BYTES = 4 * 1024 * 1024;

/** Room in the arena for texts that wait to be written into columns. */
export class TextRoom {
  /** Where the next one goes. */
  end = ROOM;

  get isFull(): boolean {
    return this.end > ROOM + ROOM_BYTES;
  }

  clear(): void {
    this.end = ROOM;
  }
}

/** The first cell of an attribute. */
export function attributeAt(index: number): number {
  return HEADER + index * ATTRIBUTE_CELLS;
}

/** How the payload is made of records that have the same attributes. */
export class CellPayload {
  /** Whether plain code has to make it. */
  isPlain = false;
  /** Attributes, by their first cells, that have to be numbers, objects, and maps to `DebugValue`s. */
  readonly counts: number[] = [];
  readonly objects: number[] = [];
  private readonly maps: number[] = [];
  private readonly parts: Part[] = [];
  /** All of it, where it is always the same. */
  private readonly whole: ConstantText | undefined;
  private readonly isRaw: boolean;
  private readonly isThere: boolean;

  /** @param attributes those without a column */
  constructor(
    private readonly event: EventPlan,
    attributes: readonly RowAttribute[],
  ) {
    this.isRaw = event.isWhole && event.order === undefined;
    const literals = event.isWhole
      ? this.addOrdered(attributes, event.order ?? {})
      : this.addFields(attributes, event.payload);
    this.isThere = event.isWhole || event.isPayloadAlways || this.parts.length > 0;
    const isSame = !this.isRaw && this.parts.every(({ use }) => use === Use.none);
    this.whole = isSame ? constantText(`{${literals.join()}}`) : undefined;
  }

  /** Whether the values of the record that is looked at are such as the payload can hold. */
  fits(): boolean {
    const { maps } = this;
    for (let index = 0; index < maps.length; index++) {
      const at = maps[index] as number;
      if (!isUsualMap(cell(at + Attribute.valueStart), cell(at + Attribute.valueEnd))) return false;
    }
    return true;
  }

  /**
   * Writes that of the record that is looked at into a row; or into that of a start and that of its end, of whose payloads `isSameAs`
   * said so.
   * @param rowCount 1 or 2
   * @param room where it is made
   */
  write(row: number, rowCount: number, room: TextRoom, { start, end, offsets }: AttributeOffsets): void {
    const { payloadColumn } = this.event;
    if (this.isRaw) payloadColumn.append(row, rowCount, start, end);
    else if (this.whole === undefined) {
      const from = room.end;
      room.end = this.make(from, offsets);
      payloadColumn.append(row, rowCount, from, room.end);
    } else if (this.isThere) payloadColumn.appendConstant(row, rowCount, this.whole);
  }

  /** Whether another is made of the same attributes in the same way. */
  isSameAs({ parts, whole }: CellPayload): boolean {
    if (this.isRaw || whole !== undefined || this.parts.length !== parts.length) return false;
    return parts.every(({ head, use, index }, at) => {
      const own = this.parts[at];
      return own?.head === head && own.use === use && own.index === index;
    });
  }

  /** @returns the offset behind it */
  private make(from: number, offsets: Int32Array): number {
    const { parts } = this;
    let to = from + 1;
    for (let number = 0; number < parts.length; number++) {
      const { head, use, index, order } = parts[number] as Part;
      const at = attributeAt(index);
      const start = use === Use.none ? 0 : cell(at + Attribute.valueStart);
      const length = use === Use.none ? 0 : cell(at + Attribute.valueEnd) - start;
      if (use === Use.entries && length === 2) continue;
      // Each begins behind a comma; the first one's becomes a brace.
      view.setUint8(to - 1, COMMA);
      to = copyText(to, head.at, head.length);
      switch (use) {
        case Use.member: {
          const member = (offsets[index] as number) + 1;
          to = copyText(to, member, (offsets[index + 1] as number) - member);
          break;
        }
        case Use.text:
          to = copyText(to, start, length);
          break;
        case Use.detail:
          to = order === undefined ? copyText(to, start, length) : putOrdered(to, texts.ofAttribute(at), order);
          view.setUint8(to++, CLOSE);
          break;
        case Use.entries:
          to = copyText(to, start + 1, length - 2);
          break;
      }
      to += 1;
    }
    view.setUint8(from, OPEN);
    if (to === from + 1) to += 1;
    view.setUint8(to - 1, CLOSE);
    return to;
  }

  /** @returns what is known of the payload */
  private addOrdered(attributes: readonly RowAttribute[], order: KeyOrder): readonly string[] {
    const known = Object.entries(order).flatMap(([name, inner]) => {
      const attribute = attributes.find((one) => one.name === name);
      if (attribute !== undefined && inner !== null) this.isPlain = true;
      return attribute === undefined ? [] : [attribute];
    });
    const others = attributes.filter(({ name }) => !Object.hasOwn(order, name));
    return [...known, ...others].map((attribute) => this.addMember(attribute));
  }

  private addFields(attributes: readonly RowAttribute[], fields: readonly PayloadField[]): readonly string[] {
    const literals: string[] = [];
    let hasMember = false;
    for (const field of fields) {
      const attribute = attributes.find(({ name }) => name === field.name);
      if (field.to === 'payload') {
        const json = attribute === undefined ? field.zero : attribute.json;
        if (json === undefined) continue;
        if (attribute !== undefined && field.name === ONEOF_FIELD) this.isPlain = true;
        if (attribute === undefined) literals.push(this.addLiteral(field.key + json));
        else if (!field.isUint64) literals.push(this.addMember(attribute));
        else if (attribute.index < 0) literals.push(this.addLiteral(field.key + json.slice(1, -1)));
        else {
          this.counts.push(attributeAt(attribute.index));
          this.parts.push({ head: constant(field.key), use: Use.text, index: attribute.index, order: undefined });
        }
      } else if (attribute === undefined) {
      } else if (field.to === 'map') {
        this.maps.push(attributeAt(attribute.index));
        this.objects.push(attributeAt(attribute.index));
        this.parts.push({ head: NOTHING, use: Use.entries, index: attribute.index, order: undefined });
      } else {
        if (hasMember || attribute.index < 0) this.isPlain = true;
        hasMember = true;
        this.objects.push(attributeAt(attribute.index));
        this.parts.push({ head: constant(field.key), use: Use.detail, index: attribute.index, order: field.order });
      }
    }
    const known = new Set(fields.map(({ name }) => name));
    return [...literals, ...attributes.filter(({ name }) => !known.has(name)).map((one) => this.addMember(one))];
  }

  private addMember({ name, index, json }: RowAttribute): string {
    if (index < 0) return this.addLiteral(`${JSON.stringify(name)}:${json}`);
    this.parts.push({ head: NOTHING, use: Use.member, index, order: undefined });
    return '';
  }

  private addLiteral(text: string): string {
    this.parts.push({ head: constant(text), use: Use.none, index: 0, order: undefined });
    return text;
  }
}

const DEBUG_KEYS = DEBUG_TYPES.map((type) => constant(`"${type}":`));

/** Whether an object of JSON, as a line has it, maps names to `DebugValue`s that each hold a text, a number or a truth value. */
function isUsualMap(start: number, end: number): boolean {
  let at = start + 1;
  while (at < end - 1) {
    at = stringEnd(at + 1, end) + 1;
    const key = debugKeyAt(at + 1);
    if (view.getUint8(at) !== OPEN || key === undefined) return false;
    at += 1 + key.length;
    if (view.getUint8(at) === QUOTE) at = stringEnd(at + 1, end);
    else while (at < end && isOfScalar(view.getUint8(at))) at++;
    if (view.getUint8(at) !== CLOSE) return false;
    at += 1;
    const next = view.getUint8(at++);
    if (next !== COMMA && at !== end) return false;
  }
  return true;
}

function debugKeyAt(at: number): Range | undefined {
  for (const key of DEBUG_KEYS) if (isSame(key.at, at, key.length)) return key;
  return undefined;
}

/** Whether numbers and the words of JSON have the byte. */
function isOfScalar(byte: number): boolean {
  return byte !== OPEN && byte !== OPEN_LIST && byte !== CLOSE && byte !== COMMA;
}

/** Texts with their keys in each of the orders. */
const ORDERED = new Map<KeyOrder, TextMemo<Range>>();

function putOrdered(to: number, known: KnownText, order: KeyOrder): number {
  let memo = ORDERED.get(order);
  if (memo === undefined) {
    memo = new TextMemo();
    ORDERED.set(order, memo);
  }
  const found = memo.get(known);
  if (found !== undefined) return copyText(to, found.at, found.length);
  const end = putText(to, orderedJson(known.text, order));
  const kept = texts.keep(to, end - to);
  if (kept !== undefined) memo.set(known, kept);
  return end;
}
