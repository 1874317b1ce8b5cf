import { LENGTH } from '../wire-type.js';
import { lengthDelimited, UNUSUAL, WireCursor } from './wire-cursor.js';

/** The largest resource or scope that is repeated in each piece, in bytes. */
const MAX_HEAD_BYTES = 1024 * 1024;
/** A piece has so many times the bytes of the resource and scope that the next one repeats, at least. */
const BYTES_A_HEAD_BYTE = 4;
/** `resource_spans` and `resource_logs`, and in them `scope_spans` and `scope_logs`, and in them `spans` and `log_records`. */
const GROUP = 1;
const SCOPE = 2;
const RECORD = 2;

/**
 * Cuts an OTLP request into requests of about `pieceBytes`: whole records, each piece with the resource and scope of its
 * own. A longer record makes its piece longer. Nothing but the framing is looked at.
 * @throws UnusualShape for what is not framed as the engine and OpenTelemetry's own libraries do, and for a resource or scope of more than 1 MiB.
 */
export function* splitRequest(body: Buffer, pieceBytes: number): Generator<Buffer> {
  const piece = new RequestPiece(body);
  const cursor = new WireCursor(body);
  while (cursor.position < body.length) {
    const tag = cursor.tag(body.length);
    if (tag !== ((GROUP << 3) | LENGTH)) {
      // A field of a newer protocol, which no decoder here would read.
      cursor.skip(tag & 7, body.length);
      continue;
    }
    const groupEnd = cursor.lengthEnd(body.length);
    piece.openGroup(headOf(body, cursor.position, groupEnd));
    for (const [, scopeStart, scopeEnd] of fields(cursor, groupEnd, SCOPE)) {
      piece.openScope(headOf(body, scopeStart, scopeEnd));
      const scopeCursor = new WireCursor(body);
      scopeCursor.position = scopeStart;
      for (const [recordStart, , recordEnd] of fields(scopeCursor, scopeEnd, RECORD)) {
        if (piece.byteCount >= Math.max(pieceBytes, BYTES_A_HEAD_BYTE * piece.headByteCount)) yield piece.take();
        piece.add(recordStart, recordEnd);
      }
      piece.closeScope();
    }
    piece.closeGroup();
    if (piece.byteCount >= pieceBytes) yield piece.take();
  }
  yield piece.take();
}

/** Fields of one number: where the field begins, where its content begins, and where both end. */
function* fields(cursor: WireCursor, end: number, number: number): Generator<readonly [number, number, number]> {
  while (cursor.position < end) {
    const start = cursor.position;
    const tag = cursor.tag(end);
    const contentEnd = tag === ((number << 3) | LENGTH) ? cursor.lengthEnd(end) : undefined;
    if (contentEnd === undefined) cursor.skip(tag & 7, end);
    else {
      const contentStart = cursor.position;
      cursor.position = contentEnd;
      yield [start, contentStart, contentEnd];
    }
  }
}

/**
 * Everything in a group or scope but what it groups.
 * @throws UnusualShape for what is not framed as any encoder does it, and for more than `maxBytes`
 */
export function headOf(body: Buffer, start: number, end: number, maxBytes = MAX_HEAD_BYTES): Buffer {
  const cursor = new WireCursor(body);
  cursor.position = start;
  const parts: Buffer[] = [];
  let byteCount = 0;
  while (cursor.position < end) {
    const fieldStart = cursor.position;
    const tag = cursor.tag(end);
    cursor.skip(tag & 7, end);
    if (tag === ((SCOPE << 3) | LENGTH)) continue;
    byteCount += cursor.position - fieldStart;
    if (byteCount > maxBytes) throw UNUSUAL;
    parts.push(body.subarray(fieldStart, cursor.position));
  }
  return Buffer.concat(parts);
}

/** A request being put together of parts of another. */
export class RequestPiece {
  /** Bytes in it so far, about. */
  byteCount = 0;
  private groups: Buffer[] = [];
  private scopes: Buffer[] = [];
  private records: Buffer[] = [];
  private groupHead: Buffer | undefined;
  private scopeHead: Buffer | undefined;
  /** Records that stand side by side are copied together. */
  private runStart = 0;
  private runEnd = 0;

  constructor(private readonly body: Buffer) {}

  /** Of what is open, which the next piece repeats. */
  get headByteCount(): number {
    return (this.groupHead?.length ?? 0) + (this.scopeHead?.length ?? 0);
  }

  openGroup(head: Buffer): void {
    this.groupHead = head;
    this.byteCount += head.length + FRAME_BYTES;
  }

  openScope(head: Buffer): void {
    this.scopeHead = head;
    this.byteCount += head.length + FRAME_BYTES;
  }

  add(start: number, end: number): void {
    if (start !== this.runEnd) this.endRun(start);
    this.runEnd = end;
    this.byteCount += end - start;
  }

  closeScope(): void {
    this.endRun(0);
    if (this.scopeHead !== undefined) {
      this.scopes.push(lengthDelimited(SCOPE, Buffer.concat([this.scopeHead, ...this.records])));
    }
    this.records = [];
    this.scopeHead = undefined;
  }

  closeGroup(): void {
    if (this.groupHead !== undefined) {
      this.groups.push(lengthDelimited(GROUP, Buffer.concat([this.groupHead, ...this.scopes])));
    }
    this.scopes = [];
    this.groupHead = undefined;
  }

  /** The request so far; what is open goes on in the next one. */
  take(): Buffer {
    const { groupHead, scopeHead } = this;
    this.closeScope();
    this.closeGroup();
    const request = Buffer.concat(this.groups);
    this.groups = [];
    this.byteCount = 0;
    if (groupHead !== undefined) this.openGroup(groupHead);
    if (scopeHead !== undefined) this.openScope(scopeHead);
    return request;
  }

  private endRun(nextStart: number): void {
    if (this.runEnd > this.runStart) this.records.push(this.body.subarray(this.runStart, this.runEnd));
    this.runStart = nextStart;
    this.runEnd = nextStart;
  }
}

/** A tag and a length, and about what their Buffer costs. */
const FRAME_BYTES = 128;
