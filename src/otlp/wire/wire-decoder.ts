import { setImmediate } from 'node:timers/promises';
import { buffer } from '../../record/arena.js';
import { isReserved, type Resource, type ResourceValue } from '../../record/attributes.js';
import { Cell, cell, pointAt } from '../../record/cells.js';
import type { Delivery, PassthroughBatch, RecordBatch, Signal } from '../../record/record-batch.js';
import { isSame } from '../../record/record-line.js';
import type { TelemetryRecord, TraceId } from '../../record/telemetry-record.js';
import { lengthDelimited, UNUSUAL, UnusualShape, valueJson, WireCursor, wrapped } from '../any-value.js';
import { COUNTED_BYTES, checkShortBody, MAX_ITEM_BYTES, WireCounter } from '../body-limits.js';
import {
  EngineRecognition,
  hasSignAmong,
  isMapped,
  isSignedItem,
  namedItem,
  namesOf,
  type Origin,
  type TelemetryNames,
} from '../engine-recognition.js';
import { EngineSightings, type SightingKind } from '../engine-sightings.js';
import type { AnyValue, KeyValue, OtlpLogRecord, OtlpSpan, ResourceGroup, ScopeGroup } from '../export-request.js';
import { hasIds, hasOddId, isId, type Rejection } from '../item-records.js';
import { type OtlpCodec, OtlpDecodeError, type OtlpEncoding } from '../otlp-codec.js';
import { UncutJson } from '../split-json.js';
import { LENGTH } from '../wire-type.js';
import { ChunkWriter } from './chunk-writer.js';
import { CellBatch, ChunkPool, type ItemChunk, recordCountOf } from './item-chunk.js';
import { readItemHead } from './item-head.js';
import { itemReading } from './read-items.js';

/** Resources that are remembered by their bytes. */
const MAX_RESOURCES = 64;
/** With their scope; a longer one is read each time. */
const MAX_RESOURCE_BYTES = 16 * 1024;
/** Bytes of lines a byte of body: a span has two lines, each with its attributes. */
const LINES_PER_BODY = 3;

/** A resource with a scope: how records have it, and what it says of whose they are. */
interface KnownResource {
  readonly resource: Resource;
  readonly names: TelemetryNames;
  readonly origin: Origin;
}

/** A part of a request: where its content begins and ends. */
interface ByteRange {
  readonly start: number;
  readonly end: number;
}

/**
 * Decodes requests of one signal straight from OTLP's bytes to lines of JSONL, and keeps other services' telemetry as it came.
 * A span or log record that looks otherwise than nearly all do becomes records by itself (`ItemRecords`); a request that is
 * framed as no encoder does it is framed anew first, by protobufjs, which also says what is wrong with it. The chunk that it
 * writes to is borrowed: the caller of the decoder calls the delivery's `release`.
 */
export class WireDecoder implements PieceDecoder {
  private readonly reading = itemReading();
  private readonly writer = new ChunkWriter(this.reading);
  private readonly resources = new Map<string, KnownResource>();
  /** The latest that was too long for that. */
  private longest: { readonly resource: Buffer; readonly scope: Buffer; readonly known: KnownResource } | undefined;
  private readonly chunks = new ChunkPool();

  /**
   * @param recognition says whose telemetry is
   * @param sightings is notified of what is not plain
   */
  constructor(
    private readonly signal: Signal,
    private readonly codecs: Readonly<Record<OtlpEncoding, OtlpCodec>>,
    private readonly recognition = new EngineRecognition(),
    private readonly sightings = new EngineSightings(),
  ) {}

  /** @throws OtlpDecodeError when the body is no such request, or has too many records */
  decode(body: Uint8Array): DecodedRequest {
    const bytes = Buffer.from(body.buffer, body.byteOffset, body.byteLength);
    checkShortBody(this.signal, bytes);
    const chunk = this.chunks.take(bytes.length * LINES_PER_BODY + 4096);
    const before = pointAt(0);
    try {
      return this.decodeInto(chunk, bytes);
    } catch (error) {
      this.chunks.giveBack(chunk);
      throw error;
    } finally {
      pointAt(before);
    }
  }

  private decodeInto(chunk: ItemChunk, bytes: Buffer): DecodedRequest {
    this.writer.begin();
    let items = new DecodedItems(this.signal, chunk, bytes);
    try {
      this.readRequest(items);
    } catch (error) {
      if (!(error instanceof UnusualShape)) throw error;
      items = new DecodedItems(this.signal, chunk, this.framedAnew(bytes));
      this.readRequest(items);
    }
    let isLent = true;
    const release = () => {
      if (isLent) this.chunks.giveBack(chunk);
      isLent = false;
    };
    const passthrough = this.passthroughOf(items);
    for (const [kind, names, count] of items.sightings) this.sightings.note(kind, names, this.signal, count);
    const { batches, rejectedCount, rejectionMessage } = items;
    return { delivery: { batches, passthrough, release }, rejectedCount, rejectionMessage };
  }

  private readRequest(items: DecodedItems): void {
    const { bytes } = items;
    const cursor = new WireCursor(bytes);
    while (cursor.position < bytes.length) {
      if (cursor.varint32(bytes.length) !== ((1 << 3) | LENGTH)) throw UNUSUAL;
      this.readGroup(cursor, cursor.lengthEnd(bytes.length), items);
    }
  }

  private readGroup(cursor: WireCursor, end: number, items: DecodedItems): void {
    const group = { start: cursor.position, end };
    let resource: Buffer = EMPTY;
    let hasResource = false;
    let hasScopes = false;
    while (cursor.position < end) {
      const tag = cursor.varint32(end);
      const fieldEnd = cursor.lengthEnd(end);
      if (tag === ((1 << 3) | LENGTH)) {
        // Protobuf merges a second one with the first, and one behind the spans is theirs as well.
        if (hasResource || hasScopes) throw UNUSUAL;
        hasResource = true;
        resource = cursor.bytes.subarray(cursor.position, fieldEnd);
        cursor.position = fieldEnd;
      } else if (tag === ((2 << 3) | LENGTH)) {
        hasScopes = true;
        this.readScope(cursor, fieldEnd, resource, group, items);
      } else if (tag === ((3 << 3) | LENGTH)) cursor.position = fieldEnd;
      else throw UNUSUAL;
    }
    // Nobody has looked yet whether it can be read.
    if (!hasScopes) this.resourceOf(resource, EMPTY);
  }

  private readScope(cursor: WireCursor, end: number, resource: Buffer, group: ByteRange, items: DecodedItems): void {
    const scopeRange = { start: cursor.position, end };
    let scope: Buffer = EMPTY;
    let hasScope = false;
    let known: KnownResource | undefined;
    while (cursor.position < end) {
      const start = cursor.position;
      const tag = cursor.varint32(end);
      const fieldEnd = cursor.lengthEnd(end);
      if (tag === ((1 << 3) | LENGTH)) {
        if (hasScope || known !== undefined) throw UNUSUAL;
        hasScope = true;
        scope = cursor.bytes.subarray(cursor.position, fieldEnd);
        cursor.position = fieldEnd;
      } else if (tag === ((2 << 3) | LENGTH)) {
        known ??= this.resourceOf(resource, scope);
        if (!this.readItem(cursor, fieldEnd, known, items)) items.pass(group, scopeRange, { start, end: fieldEnd });
      } else if (tag === ((3 << 3) | LENGTH)) cursor.position = fieldEnd;
      else throw UNUSUAL;
    }
    if (known === undefined) this.resourceOf(resource, scope);
    else items.endScope(known);
  }

  /** @returns whether it was dealt with; else it is to be passed on as it is */
  private readItem(cursor: WireCursor, end: number, known: KnownResource, items: DecodedItems): boolean {
    const start = cursor.position;
    try {
      if (known.origin !== 'engine' && this.isPassed(cursor, end, known)) return false;
    } catch (error) {
      if (!(error instanceof UnusualShape)) throw error;
    }
    cursor.position = end;
    if (!this.addUsual(start, end, known, items))
      return this.addUnusual(cursor.bytes.subarray(start, end), known, items);
    return true;
  }

  /** Whether an item is another service's, and can be passed on: by itself, so that it does not matter how a body is cut. */
  private isPassed(cursor: WireCursor, end: number, { origin }: KnownResource): boolean {
    const head = readItemHead(this.signal, cursor, end);
    if (head.hasOddId || this.recognition.isOfEngine(origin, this.signal, head)) return false;
    return this.signal === 'logs' || (head.hasTraceId && head.hasSpanId);
  }

  /** Adds an item of the engine that looks as nearly all do to the chunk. @returns whether it was one */
  private addUsual(start: number, end: number, known: KnownResource, items: DecodedItems): boolean {
    const { writer, signal } = this;
    const { arenaShift, chunk } = items;
    if (known.origin === 'other' || arenaShift === undefined) return false;
    const from = start + arenaShift;
    const to = end + arenaShift;
    if (!(signal === 'traces' ? writer.addSpan(from, to, chunk) : writer.addLog(from, to, chunk))) return false;
    items.noteEngine(known);
    items.addItem(buffer, cell(Cell.traceId), known.resource);
    return true;
  }

  private addUnusual(bytes: Buffer, known: KnownResource, items: DecodedItems): boolean {
    const { recognition, signal } = this;
    const { records } = this.reading;
    const { resources } = this.codecs.protobuf.decode(signal, wrapped(EMPTY, EMPTY, bytes));
    const item = resources[0]?.scopes[0]?.records[0];
    if (item === undefined) throw UNUSUAL;
    const isEngine = recognition.isOfEngine(known.origin, signal, namedItem(item));
    if ('body' in item) {
      const isOdd = hasOddId(item);
      if (!isOdd && (!isEngine || !isId(item.traceId, 16))) return false;
      if (isOdd) items.reject('with an id of a wrong length');
      else items.addRecords(records.ofLog(item), known);
      return true;
    }
    if (isEngine) items.addRecords(records.ofSpan(item), known);
    else if (!hasIds(item)) items.reject('without a valid trace id and span id');
    else if (hasOddId(item)) items.reject('with an id of a wrong length');
    else return false;
    return true;
  }

  private framedAnew(request: Uint8Array): Buffer {
    const { protobuf } = this.codecs;
    return Buffer.from(protobuf.encode(protobuf.decode(this.signal, request)));
  }

  private passthroughOf({ passed, passedCount: recordCount }: DecodedItems): readonly PassthroughBatch[] {
    const { signal, codecs } = this;
    if (recordCount === 0) return [];
    const request = codecs.protobuf.decode(signal, passed.take());
    for (const group of request.resources) this.noteSigns(group);
    return [{ signal, body: Buffer.from(codecs.json.encode(request)).toString('utf8'), recordCount }];
  }

  /** Notes what is passed on and looks like the engine's, but for its log records outside of any trace where its name is known. */
  private noteSigns({ resource: { attributes }, scopes }: ResourceGroup<OtlpSpan | OtlpLogRecord>): void {
    const { recognition, signal } = this;
    if (isMapped(attributes)) return;
    for (const { scope, records } of scopes) {
      const names = namesOf(attributes, scope.name);
      const origin = recognition.originOf(attributes, names);
      const isKnown = origin !== 'ifShaped' && origin !== 'ifShapedOrWait';
      const isOfAll = recognition.hasSign(names) || hasSignAmong(attributes) || hasSignAmong(scope.attributes);
      const { length } = records.filter(
        (one) => (isOfAll || isSignedItem(one)) && !(isKnown && recognition.isOfEngine(origin, signal, namedItem(one))),
      );
      if (length > 0) this.sightings.note('passed', names, signal, length);
    }
  }

  private resourceOf(resource: Buffer, scope: Buffer): KnownResource {
    if (resource.length + scope.length > MAX_RESOURCE_BYTES) return this.longResourceOf(resource, scope);
    const key = `${resource.length}:${resource.toString('latin1')}${scope.toString('latin1')}`;
    let found = this.resources.get(key);
    if (found === undefined) {
      found = this.readResource(resource, scope);
      if (this.resources.size >= MAX_RESOURCES) this.resources.clear();
      this.resources.set(key, found);
    }
    return found;
  }

  /** Of those that are too long to remember the latest one stays for the scopes behind it. */
  private longResourceOf(resource: Buffer, scope: Buffer): KnownResource {
    const { longest } = this;
    if (longest?.scope.equals(scope) === true && longest.resource.equals(resource)) return longest.known;
    const known = this.readResource(resource, scope);
    this.longest = { resource: Buffer.from(resource), scope: Buffer.from(scope), known };
    return known;
  }

  private readResource(resource: Buffer, scope: Buffer): KnownResource {
    const request = this.codecs.protobuf.decode('traces', wrapped(resource, scope, undefined));
    // Both signals have them in the same fields.
    const group = request.signal === 'traces' ? request.resources[0] : undefined;
    const first = group?.scopes[0];
    if (group === undefined || first === undefined) return NOBODYS;
    const { attributes } = group.resource;
    const names = namesOf(attributes, first.scope.name);
    return { resource: resourceOf(group, first), names, origin: this.recognition.originOf(attributes, names) };
  }
}

/** Decodes requests of one signal in JSON: they are made the same message in protobuf first. */
export class JsonDecoder implements PieceDecoder {
  constructor(
    private readonly signal: Signal,
    private readonly wire: WireDecoder,
    private readonly codecs: Readonly<Record<OtlpEncoding, OtlpCodec>>,
  ) {}

  /** @throws OtlpDecodeError when the body is no such request, or has too many records */
  decode(body: Uint8Array): DecodedRequest {
    const { protobuf, json } = this.codecs;
    return this.wire.decode(protobuf.encode(json.decode(this.signal, body)));
  }
}

const EMPTY = Buffer.alloc(0);

/** Of a group without a resource or a scope, which `wrapped` never makes. */
const NOBODYS: KnownResource = {
  resource: { attributes: {}, scope: { name: '', version: '' } },
  names: { service: '', scope: '' },
  origin: 'other',
};

/** The resource and scope of a group as records carry them. */
export function resourceOf(
  { resource }: ResourceGroup<OtlpSpan | OtlpLogRecord>,
  { scope }: ScopeGroup<OtlpSpan | OtlpLogRecord>,
): Resource {
  const attributes: Record<string, ResourceValue> = {};
  for (const { key, value: sent } of resource.attributes) {
    const value = resourceValue({ key, value: sent });
    if (!isReserved(key, value)) attributes[key] = value;
  }
  return { attributes, scope: { name: scope.name, version: scope.version } };
}

/** Scalars and lists of them as they are; anything deeper as its JSON text. */
function resourceValue({ value }: KeyValue): ResourceValue {
  if (typeof value === 'string' || typeof value === 'boolean' || typeof value === 'number') return value;
  if (typeof value === 'bigint') return Number.isSafeInteger(Number(value)) ? Number(value) : String(value);
  if (Array.isArray(value)) {
    return (value as readonly AnyValue[]).map((item) => (typeof item === 'string' ? item : valueJson(item)));
  }
  return value === null ? '' : valueJson(value);
}

/**
 * What a request's items become, in the order in which they came: items of the chunk, each batch of one trace and resource,
 * and between them records; what is passed on; what is rejected, and why.
 */
class DecodedItems {
  readonly batches: RecordBatch[] = [];
  readonly passed: RequestPiece;
  passedCount = 0;
  readonly sightings: (readonly [kind: SightingKind, names: TelemetryNames, itemCount: number])[] = [];
  /** Items of the scope that are the engine's, as they look. */
  private newCount = 0;
  rejectedCount = 0;
  private readonly reasons = new Set<Rejection>();
  private recordCount = 0;
  /** The latest batch, while it can grow: items of the chunk, or records. */
  private items: CellBatch | undefined;
  private records: (RecordBatch & { readonly records: TelemetryRecord[] }) | undefined;
  private traceId = '' as TraceId;
  private readonly traceIdBytes = Buffer.alloc(16);
  /** Where the group and the scope begin of what was passed on last. */
  private group = -1;
  private scope = -1;
  /** What is added to a place in the request for that in the arena; `undefined` where it has no room there. */
  readonly arenaShift: number | undefined;

  constructor(
    private readonly signal: Signal,
    readonly chunk: ItemChunk,
    readonly bytes: Buffer,
  ) {
    this.passed = new RequestPiece(bytes);
    this.arenaShift = chunk.begin(signal, bytes);
  }

  get rejectionMessage(): string {
    if (this.rejectedCount === 0) return '';
    const what = this.signal === 'traces' ? 'spans' : 'log records';
    return `${this.rejectedCount} ${what} ${[...this.reasons].join(' or ')} were not kept; the rest was`;
  }

  reject(reason: Rejection): void {
    this.rejectedCount += 1;
    this.reasons.add(reason);
  }

  /** An item is the engine's: by its shape alone? */
  noteEngine({ origin }: KnownResource): void {
    if (origin === 'ifShaped' || origin === 'ifShapedOrWait') this.newCount += 1;
  }

  /** All items of a scope were read. */
  endScope({ names }: KnownResource): void {
    if (this.newCount > 0) this.sightings.push(['new', names, this.newCount]);
    this.newCount = 0;
  }

  /** Keeps an item as it came, with its group's resource and its scope. */
  pass(group: ByteRange, scope: ByteRange, item: ByteRange): void {
    const { passed, bytes } = this;
    this.passedCount += 1;
    if (scope.start !== this.scope) {
      passed.closeScope();
      if (group.start !== this.group) {
        passed.closeGroup();
        passed.openGroup(headOf(bytes, group.start, group.end, Number.POSITIVE_INFINITY));
      }
      passed.openScope(headOf(bytes, scope.start, scope.end, Number.POSITIVE_INFINITY));
      this.group = group.start;
      this.scope = scope.start;
    }
    passed.add(item.start, item.end);
  }

  /** The chunk has one more item. @param traceId where the id of its trace stands */
  addItem(from: Buffer, traceId: number, resource: Resource): void {
    const { chunk } = this;
    const { itemCount } = chunk;
    this.count(chunk.recordsPerItem);
    const isSameTrace = this.traceId !== '' && isSame(this.traceIdBytes, from, traceId, traceId + 16);
    if (!isSameTrace) {
      from.copy(this.traceIdBytes, 0, traceId, traceId + 16);
      this.traceId = this.traceIdBytes.toString('hex') as TraceId;
    }
    if (isSameTrace && this.items?.resource === resource) {
      this.items.to = itemCount;
      return;
    }
    this.records = undefined;
    this.items = new CellBatch(this.traceId, resource, chunk, itemCount - 1, itemCount);
    this.batches.push(this.items);
  }

  /** The engine's records of one item. */
  addRecords(records: readonly TelemetryRecord[] | Rejection, known: KnownResource): void {
    this.noteEngine(known);
    if (typeof records === 'string') {
      this.reject(records);
      return;
    }
    this.count(records.length);
    const [first] = records;
    if (first === undefined) return;
    this.items = undefined;
    const { resource } = known;
    if (this.records?.traceId !== first.traceId || this.records.resource !== resource) {
      this.records = { traceId: first.traceId, resource, records: [] };
      this.batches.push(this.records);
    }
    this.records.records.push(...records);
  }

  private count(more: number): void {
    this.recordCount += more;
    checkRecordCount(this.recordCount);
  }
}

/** The largest resource or scope that is repeated in each piece, in bytes. */
const MAX_HEAD_BYTES = 1024 * 1024;
/** A piece has so many times the bytes of the resource and scope that the next one repeats, at least. */
export const BYTES_A_HEAD_BYTE = 4;
/** `resource_spans` and `resource_logs`, and in them `scope_spans` and `scope_logs`, and in them `spans` and `log_records`. */
export const GROUP = 1;
export const SCOPE = 2;
export const RECORD = 2;

/**
 * Cuts an OTLP request into requests of about `pieceBytes`: whole records, each piece with the resource and scope of its
 * own. A longer record makes its piece longer. Nothing but the framing is looked at.
 * @param onTooLong is called for each record of more than `MAX_ITEM_BYTES`, which is in no piece then; left out: all are
 * @throws UnusualShape for what is not framed as the engine and OpenTelemetry's own libraries do, and for a resource or scope of more than 1 MiB.
 */
export function* splitRequest(body: Buffer, pieceBytes: number, onTooLong?: () => void): Generator<Buffer> {
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
        if (onTooLong !== undefined && recordEnd - recordStart > MAX_ITEM_BYTES) {
          onTooLong();
          continue;
        }
        const mostBytes = Math.max(pieceBytes, BYTES_A_HEAD_BYTE * piece.headByteCount);
        if (piece.hasRecords && piece.byteCount + recordEnd - recordStart > mostBytes) yield piece.take();
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
export function* fields(cursor: WireCursor, end: number, number: number): Generator<readonly [number, number, number]> {
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

  get hasRecords(): boolean {
    return this.runEnd > this.runStart || this.groups.length + this.scopes.length + this.records.length > 0;
  }

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

/** What is decoded at a time, in bytes: some 500 spans, and at worst as many messages as keep others waiting for 100 ms. */
export const PIECE_BYTES = 256 * 1024;
/** A longer body with few spans or log records is decoded at once, up to so many times that, and one for so many bytes of that. */
const PIECES_AT_ONCE = 4;
const BYTES_AN_ITEM = 128;
/** Fields that are counted at a time. */
const COUNTED_AT_ONCE = 20_000;
/** The longest body that is decoded in one go where it cannot be cut, in bytes. */
export const MAX_UNCUT_BYTES = 1024 * 1024;

/**
 * Cuts a request into shorter ones, having counted what it holds; yields `undefined` where others may get their turn meanwhile.
 * Calls `onTooLong` for each span or log record that is too long, and in none of them.
 * @throws UnusualShape or UncutJson for what cannot be cut, OtlpDecodeError beyond one of `BODY_LIMITS`
 */
export type Splitter = (
  signal: Signal,
  body: Buffer,
  pieceBytes: number,
  onTooLong: () => void,
) => Generator<Buffer | undefined>;

/** Cuts protobuf. */
export function* splitProtobuf(
  signal: Signal,
  body: Buffer,
  pieceBytes: number,
  onTooLong: () => void,
): Generator<Buffer | undefined> {
  const itemCount = yield* countProtobuf(signal, body);
  // The engine's requests are of 512 spans and up to 350 KB: what takes no longer than a piece may is not cut.
  const isAtOnce = body.length <= PIECES_AT_ONCE * pieceBytes && itemCount <= pieceBytes / BYTES_AN_ITEM;
  if (isAtOnce) yield body;
  else yield* splitRequest(body, pieceBytes, onTooLong);
}

/**
 * Counts what a request holds; yields where others may get their turn. @throws OtlpDecodeError beyond one of `BODY_LIMITS`
 * @returns how many spans or log records; infinitely many where that is not known
 */
export function* countProtobuf(signal: Signal, body: Buffer): Generator<undefined, number> {
  const counter = new WireCounter(signal, body);
  while (counter.count(COUNTED_AT_ONCE)) yield undefined;
  return counter.items;
}

/**
 * Decodes requests of any size. What a request holds is counted before anything is made of it; then it is decoded piece by piece, so that a
 * large body needs little more memory than its records. Between any two pieces others get their turn.
 */
export class LargeBodyDecoder implements BodyDecoder {
  constructor(
    private readonly signal: Signal,
    private readonly decoder: PieceDecoder,
    private readonly split: Splitter,
    private readonly pieceBytes = PIECE_BYTES,
  ) {}

  async decode(body: Uint8Array): Promise<DecodedRequest> {
    const steps = this.decodeInSteps(body);
    for (let step = steps.next(); ; step = steps.next()) {
      if (step.done === true) return step.value;
      await setImmediate();
    }
  }

  /** The same for a caller that decides when it continues. @throws OtlpDecodeError */
  *decodeInSteps(body: Uint8Array): Generator<undefined, DecodedRequest> {
    if (body.length <= Math.min(COUNTED_BYTES, this.pieceBytes)) return this.decoder.decode(body);
    const bytes = Buffer.from(body.buffer, body.byteOffset, body.byteLength);
    const pieces = new DecodedPieces();
    try {
      for (const piece of this.split(this.signal, bytes, this.pieceBytes, () => pieces.reject(LONG_ITEM))) {
        if (piece !== undefined) pieces.add(this.decodePiece(piece, pieces.count + 1));
        yield;
      }
      return pieces.whole();
    } catch (error) {
      pieces.release();
      if (!(error instanceof UnusualShape) && !(error instanceof UncutJson)) throw error;
      return this.decodeUncut(body);
    }
  }

  private decodePiece(piece: Buffer, number: number): DecodedRequest {
    try {
      return this.decoder.decode(piece);
    } catch (cause) {
      if (!(cause instanceof OtlpDecodeError) || number === 1) throw cause;
      // Places in it count from the part's beginning.
      throw new OtlpDecodeError(`Part ${number} of the body, of ${this.pieceBytes} bytes each: ${cause.message}`, {
        cause,
      });
    }
  }

  private decodeUncut(body: Uint8Array): DecodedRequest {
    if (body.length > MAX_UNCUT_BYTES) {
      throw new OtlpDecodeError(
        `The body is damaged, or framed as none of OpenTelemetry's libraries does it; such a one may have ${MAX_UNCUT_BYTES} bytes, this one has ${body.length}.`,
      );
    }
    return this.decoder.decode(body);
  }
}

const LONG_ITEM = `a span or log record of more than ${MAX_ITEM_BYTES} bytes was not kept; the rest was`;

/** What the pieces of a request became, put together in their order. */
class DecodedPieces {
  private readonly batches: RecordBatch[] = [];
  private readonly passthrough: PassthroughBatch[] = [];
  private readonly releases: (() => void)[] = [];
  private rejectedCount = 0;
  private rejectionMessage = '';
  private recordCount = 0;
  /** Pieces so far. */
  count = 0;

  /** @throws OtlpDecodeError for too many records in all */
  add({ delivery, rejectedCount, rejectionMessage }: DecodedRequest): void {
    this.count += 1;
    if (delivery.release !== undefined) this.releases.push(delivery.release);
    for (const batch of delivery.batches) {
      this.batches.push(batch);
      this.recordCount += recordCountOf(batch);
    }
    for (const batch of delivery.passthrough) {
      this.passthrough.push(batch);
      this.recordCount += batch.recordCount;
    }
    this.rejectedCount += rejectedCount;
    this.rejectionMessage ||= rejectionMessage;
    checkRecordCount(this.recordCount + this.rejectedCount);
  }

  /** @param reason for one item that is in no piece */
  reject(reason: string): void {
    this.rejectedCount += 1;
    this.rejectionMessage ||= reason;
  }

  whole(): DecodedRequest {
    const { batches, passthrough, rejectedCount, rejectionMessage } = this;
    return { delivery: { batches, passthrough, release: () => this.release() }, rejectedCount, rejectionMessage };
  }

  /** Gives back what the records stand in. */
  release(): void {
    for (const release of this.releases.splice(0)) release();
  }
}

/** An export request as records, and what had to be left out of it. */
export interface DecodedRequest {
  readonly delivery: Delivery;
  /** Spans and log records that cannot be kept: without a valid id, or with a time beyond int64. */
  readonly rejectedCount: number;
  /** Why, for `partial_success`; empty when nothing was rejected. */
  readonly rejectionMessage: string;
}

/** Makes telemetry records of a short request's bytes, in one go. */
export interface PieceDecoder {
  /** @throws OtlpDecodeError when the body is no such request */
  decode(body: Uint8Array): DecodedRequest;
}

/** Makes telemetry records of a request's bytes, however many; a long one in parts, between which others get their turn. */
export interface BodyDecoder {
  /**
   * @param body not to be changed before it is decoded
   * @throws OtlpDecodeError when the body is no such request, or holds more than one may
   */
  decode(body: Uint8Array): Promise<DecodedRequest>;
}

/**
 * How many records (a span makes two: its start and its end) one request may become. Each takes up to 3 KB until it is on
 * disk, however few bytes brought it, so that a body within its size limit could ask for 6 GB; these are at most about
 * 1 GB. What is rejected counts, too: it costs time. A body of 64 MiB as the engine fills it has about 80,000 of spans or 220,000 of log records.
 */
export const MAX_RECORDS = 300_000;

/** @throws OtlpDecodeError for more than {@link MAX_RECORDS}. */
export function checkRecordCount(count: number): void {
  if (count > MAX_RECORDS) {
    throw new OtlpDecodeError(`The body has more than ${MAX_RECORDS} records; send smaller batches.`);
  }
}
