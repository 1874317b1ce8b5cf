import type { Signal } from '../record/record-batch.js';
import { BODY_LIMITS, MAX_ITEM_BYTES, tooMany } from './body-limits.js';

/** The largest resource or scope that is repeated in each piece, in bytes. */
const MAX_HEAD_BYTES = 1024 * 1024;
/** A piece has so many times the bytes of the resource and scope that the next one repeats, at least. */
const BYTES_A_HEAD_BYTE = 4;
/** What is looked at before others get their turn, in bytes. */
const TURN_BYTES = 256 * 1024;

const QUOTE = 0x22;
const COMMA = 0x2c;
const COLON = 0x3a;
const BACKSLASH = 0x5c;
const OPEN_LIST = 0x5b;
const CLOSE_LIST = 0x5d;
const OPEN_OBJECT = 0x7b;
const CLOSE_OBJECT = 0x7d;
const BYTE_ORDER_MARK = Buffer.from([0xef, 0xbb, 0xbf]);

/** By signal: the lists of groups, of scopes in them and of items in those, each as protobuf's mapping to JSON spells it and as the .proto file does. */
const LISTS = {
  traces: [
    ['resourceSpans', 'resource_spans'],
    ['scopeSpans', 'scope_spans'],
    ['spans', 'spans'],
  ],
  logs: [
    ['resourceLogs', 'resource_logs'],
    ['scopeLogs', 'scope_logs'],
    ['logRecords', 'log_records'],
  ],
} as const;

/** Thrown for what cannot be cut: JSON that is damaged, or has its lists in another place than OTLP. */
export class UncutJson extends Error {
  override readonly name = 'UncutJson';
}

/** Thrown again and again, so that it costs no stack trace. */
const UNCUT = new UncutJson('read it whole');

interface Part {
  /** Its members but for the list, joined by commas. */
  readonly head: Buffer;
  readonly parts: readonly Part[];
  /** Where items begin and end, one after the other; of a scope. */
  readonly items: readonly number[];
}

/**
 * Cuts an OTLP request in JSON into requests of about `pieceBytes`, as `splitRequest` does it with protobuf, and counts its content before. Nothing but braces, strings and
 * the names of lists is looked at; that it is JSON, those find out who parse the pieces.
 * @param onTooLong is called for each item of more than `MAX_ITEM_BYTES`, which is in no piece
 * @returns pieces, and `undefined` where others may get their turn.
 * @throws UncutJson, OtlpDecodeError beyond one of `BODY_LIMITS`
 */
export function* splitJson(
  signal: Signal,
  body: Buffer,
  pieceBytes: number,
  onTooLong: () => void,
): Generator<Buffer | undefined> {
  const scan = new Scan(body, signal);
  const request = yield* scan.request();
  const [groupList, scopeList, itemList] = LISTS[signal].map(([name]) => Buffer.from(`"${name}":[`)) as [
    Buffer,
    Buffer,
    Buffer,
  ];
  let groups: Buffer[] = [];
  let byteCount = 0;
  let isFirst = true;
  const take = () => {
    const piece = objectOf(isFirst ? request.head : EMPTY, groupList, groups);
    isFirst = false;
    groups = [];
    byteCount = 0;
    return piece;
  };
  for (const group of request.parts) {
    let scopes: Buffer[] = [];
    for (const scope of group.parts) {
      const headBytes = group.head.length + scope.head.length;
      const fullBytes = Math.max(pieceBytes, BYTES_A_HEAD_BYTE * headBytes);
      let items: Buffer[] = [];
      for (let at = 0; at < scope.items.length; at += 2) {
        if (byteCount >= fullBytes) {
          scopes.push(objectOf(scope.head, itemList, items));
          groups.push(objectOf(group.head, scopeList, scopes));
          yield take();
          [scopes, items] = [[], []];
          byteCount = headBytes;
        }
        const item = body.subarray(scope.items[at], scope.items[at + 1]);
        if (item.length > MAX_ITEM_BYTES) {
          onTooLong();
          continue;
        }
        items.push(item);
        byteCount += item.length;
      }
      scopes.push(objectOf(scope.head, itemList, items));
      byteCount += scope.head.length + PART_BYTES;
    }
    groups.push(objectOf(group.head, scopeList, scopes));
    byteCount += group.head.length + PART_BYTES;
    if (byteCount >= pieceBytes) yield take();
  }
  yield take();
}

const EMPTY = Buffer.alloc(0);
/** An empty resource or scope costs as much as about so many bytes of items. */
const PART_BYTES = 128;
const COMMA_TEXT = Buffer.from(',');
const OPENING = Buffer.from('{');
const CLOSING = Buffer.from(']}');

/** `{head,"list":[part,part]}` */
function objectOf(head: Buffer, list: Buffer, parts: readonly Buffer[]): Buffer {
  const texts = [OPENING, head, ...(head.length === 0 ? [] : [COMMA_TEXT]), list];
  parts.forEach((part, index) => {
    if (index > 0) texts.push(COMMA_TEXT);
    texts.push(part);
  });
  texts.push(CLOSING);
  return Buffer.concat(texts);
}

/** Finds the lists of a request, and counts. */
class Scan {
  private position = 0;
  private turnAt = TURN_BYTES;
  private groups = 0;
  private scopes = 0;
  private itemCount = 0;
  private messages = 0;
  /** Of the current part. */
  private fields = 0;

  constructor(
    private readonly bytes: Buffer,
    private readonly signal: Signal,
  ) {
    if (bytes.subarray(0, 3).equals(BYTE_ORDER_MARK)) this.position = 3;
  }

  /** @throws UncutJson, OtlpDecodeError */
  *request(): Generator<undefined, Part> {
    const request = yield* this.part(0);
    this.skipSpace();
    if (this.position !== this.bytes.length) throw UNCUT;
    return request;
  }

  /** An object with a list of the next ones in it. @param level 0: the request, 1: a group, 2: a scope */
  private *part(level: 0 | 1 | 2): Generator<undefined, Part> {
    this.expect(OPEN_OBJECT);
    /** Where members that are not the list begin and end: those before it, and those behind it. */
    const heads: [number, number][] = [];
    let isBehindHead = false;
    const parts: Part[] = [];
    const items: number[] = [];
    let headBytes = 0;
    let headMessages = 0;
    let hasList = false;
    for (let isFirst = true; this.next() !== CLOSE_OBJECT; isFirst = false) {
      if (!isFirst) this.expect(COMMA);
      this.skipSpace();
      const start = this.position;
      const isList = this.isList(level);
      this.expect(COLON);
      if (!isList) {
        const before = this.messages;
        this.skipValue(MAX_HEAD_BYTES);
        headMessages += this.messages - before;
        const last = heads.at(-1);
        if (last !== undefined && isBehindHead) last[1] = this.position;
        else heads.push([start, this.position]);
        isBehindHead = true;
        headBytes += this.position - start;
        if (headBytes > MAX_HEAD_BYTES) throw UNCUT;
        continue;
      }
      isBehindHead = false;
      if (hasList) throw UNCUT;
      hasList = true;
      this.expect(OPEN_LIST);
      for (let isFirstPart = true; this.next() !== CLOSE_LIST; isFirstPart = false) {
        if (!isFirstPart) this.expect(COMMA);
        this.countPart(level);
        if (level === 2) {
          this.skipSpace();
          items.push(this.position);
          this.skipValue();
          items.push(this.position);
        } else {
          parts.push(yield* this.part(level === 0 ? 1 : 2));
          this.turnAt -= PART_BYTES;
        }
        if (this.position < this.turnAt) continue;
        this.turnAt = this.position + TURN_BYTES;
        yield;
      }
      this.position += 1;
    }
    this.position += 1;
    if (level === 1) this.count(headMessages * parts.length);
    const [first = EMPTY, ...rest] = heads.map(([start, end]) => this.bytes.subarray(start, end));
    return { head: Buffer.concat([first, ...rest.flatMap((head) => [COMMA_TEXT, head])]), parts, items };
  }

  private countPart(level: 0 | 1 | 2): void {
    this.fields = 0;
    if (level === 0 && ++this.groups > BODY_LIMITS.groups) throw tooMany('groups');
    if (level === 1 && ++this.scopes > BODY_LIMITS.scopes) throw tooMany('scopes');
    if (level === 2 && ++this.itemCount > BODY_LIMITS.items) throw tooMany('items');
  }

  private count(messages: number): void {
    this.messages += messages;
    if (this.messages > BODY_LIMITS.messages) throw tooMany('messages');
  }

  /** Passes over a member's name. @returns whether it is that of the list of this level. */
  private isList(level: 0 | 1 | 2): boolean {
    if (this.bytes[this.position] !== QUOTE) throw UNCUT;
    const start = this.position + 1;
    this.skipString();
    const length = this.position - 1 - start;
    // No name in OTLP needs an escape; one that has it could be that of the list.
    if (this.bytes.subarray(start, start + length).includes(BACKSLASH)) throw UNCUT;
    return LISTS[this.signal][level].some(
      (name) => name.length === length && this.bytes.toString('latin1', start, start + length) === name,
    );
  }

  private next(): number | undefined {
    this.skipSpace();
    return this.bytes[this.position];
  }

  private expect(byte: number): void {
    if (this.next() !== byte) throw UNCUT;
    this.position += 1;
  }

  private skipSpace(): void {
    const { bytes } = this;
    for (const end = this.position + MAX_HEAD_BYTES; this.position < end; this.position += 1) {
      const byte = bytes[this.position];
      if (byte !== 0x20 && byte !== 0x0a && byte !== 0x0d && byte !== 0x09) return;
    }
    throw UNCUT;
  }

  private skipString(): void {
    const { bytes } = this;
    const { length } = bytes;
    let position = this.position + 1;
    for (; position < length; position++) {
      const byte = bytes[position];
      if (byte === BACKSLASH) position += 1;
      else if (byte === QUOTE) {
        this.position = position + 1;
        return;
      }
    }
    throw UNCUT;
  }

  /** @param maxBytes beyond which it is not worth while to look for its end */
  private skipValue(maxBytes = Number.POSITIVE_INFINITY): void {
    const { bytes } = this;
    let depth = 0;
    this.skipSpace();
    const start = this.position;
    const length = Math.min(bytes.length, start + maxBytes);
    while (this.position < length) {
      switch (bytes[this.position]) {
        case QUOTE:
          this.skipString();
          if (depth === 0) return;
          continue;
        case OPEN_OBJECT:
        case OPEN_LIST:
          depth += 1;
          this.count(1);
          this.countField();
          break;
        case CLOSE_OBJECT:
        case CLOSE_LIST:
          if (depth === 0) {
            if (this.position === start) throw UNCUT;
            return;
          }
          depth -= 1;
          if (depth === 0) {
            this.position += 1;
            return;
          }
          break;
        case COMMA:
          if (depth === 0) {
            if (this.position === start) throw UNCUT;
            return;
          }
          this.countField();
          break;
      }
      this.position += 1;
    }
    throw UNCUT;
  }

  private countField(): void {
    if (++this.fields > BODY_LIMITS.fields) throw tooMany('fields');
  }
}
