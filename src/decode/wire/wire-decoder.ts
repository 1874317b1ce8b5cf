import type { OtlpCodec } from '../../otlp/otlp-codec.js';
import { LENGTH } from '../../otlp/wire-type.js';
import type { TraceId } from '../../record/ids.js';
import type { RecordBatch, Signal } from '../../record/record-batch.js';
import { PageBatch, PagePool, type RecordPage } from '../../record/record-page.js';
import type { Resource } from '../../record/resource.js';
import { isSame } from '../../record/same-bytes.js';
import type { TelemetryRecord } from '../../record/telemetry-record.js';
import type { AttributeSchema } from '../attribute-schema.js';
import { isEngine, resourceOf } from '../otlp-request-decoder.js';
import { checkRecordCount, type DecodedRequest, type PieceDecoder, type RequestDecoder } from '../request-decoder.js';
import { ItemLines } from './item-lines.js';
import { LogSlice, SpanSlice } from './item-slice.js';
import { lengthDelimited, UNUSUAL, UnusualShape, WireCursor } from './wire-cursor.js';

/** Resources that are remembered by their bytes. */
const MAX_RESOURCES = 64;
/** With their scope; a longer one is read each time. */
const MAX_RESOURCE_BYTES = 16 * 1024;
/** The group is another service's, or not of the usual shape. */
const NOT_OURS = null;
/** Bytes of lines a byte of body: a span has two lines, each with its attributes. */
const LINES_PER_BODY = 3;

/**
 * Decodes requests of one signal straight from OTLP's bytes to lines of JSONL. It knows only the shapes that the engine sends;
 * a span or log record of another shape is read by the general decoder, and so is a whole request that has another service's items in it
 * or that cannot be read. What comes out is the same either way, which tests hold it to. The page that it writes to is
 * lent: whoever decodes calls the delivery's `release`.
 */
export class WireDecoder implements PieceDecoder {
  private readonly lines: ItemLines;
  private readonly span = new SpanSlice();
  private readonly log = new LogSlice();
  private readonly resources = new Map<string, Resource | null>();
  private readonly pages = new PagePool();

  constructor(
    private readonly signal: Signal,
    schema: AttributeSchema,
    private readonly general: { readonly codec: OtlpCodec; readonly decoder: RequestDecoder },
  ) {
    this.lines = new ItemLines(schema);
  }

  decode(body: Uint8Array): DecodedRequest {
    const bytes = Buffer.from(body.buffer, body.byteOffset, body.byteLength);
    const page = this.pages.take(bytes.length * LINES_PER_BODY + 4096);
    const batches = new DecodedBatches(page);
    try {
      this.readRequest(bytes, batches);
    } catch (error) {
      this.pages.giveBack(page);
      if (!(error instanceof UnusualShape)) throw error;
      return this.general.decoder.decode(this.general.codec.decode(this.signal, body));
    }
    let isLent = true;
    const release = () => {
      if (isLent) this.pages.giveBack(page);
      isLent = false;
    };
    return { delivery: { batches: batches.list, foreign: [], release }, rejectedCount: 0, rejectionMessage: '' };
  }

  private readRequest(bytes: Buffer, batches: DecodedBatches): void {
    const cursor = new WireCursor(bytes);
    while (cursor.position < bytes.length) {
      if (cursor.varint32(bytes.length) !== ((1 << 3) | LENGTH)) throw UNUSUAL;
      this.readGroup(cursor, cursor.lengthEnd(bytes.length), batches);
    }
  }

  private readGroup(cursor: WireCursor, end: number, batches: DecodedBatches): void {
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
        this.readScope(cursor, fieldEnd, resource, batches);
      } else if (tag === ((3 << 3) | LENGTH)) cursor.position = fieldEnd;
      else throw UNUSUAL;
    }
    // Nobody has looked yet whether it can be read.
    if (!hasScopes) this.resourceOf(resource, EMPTY);
  }

  private readScope(cursor: WireCursor, end: number, resource: Buffer, batches: DecodedBatches): void {
    let scope: Buffer = EMPTY;
    let hasScope = false;
    let known: Resource | undefined;
    while (cursor.position < end) {
      const tag = cursor.varint32(end);
      const fieldEnd = cursor.lengthEnd(end);
      if (tag === ((1 << 3) | LENGTH)) {
        if (hasScope || known !== undefined) throw UNUSUAL;
        hasScope = true;
        scope = cursor.bytes.subarray(cursor.position, fieldEnd);
        cursor.position = fieldEnd;
      } else if (tag === ((2 << 3) | LENGTH)) {
        known ??= this.resourceOf(resource, scope);
        this.readItem(cursor, fieldEnd, known, batches);
      } else if (tag === ((3 << 3) | LENGTH)) cursor.position = fieldEnd;
      else throw UNUSUAL;
    }
    if (known === undefined) this.resourceOf(resource, scope);
  }

  private readItem(cursor: WireCursor, end: number, resource: Resource, batches: DecodedBatches): void {
    const start = cursor.position;
    try {
      if (this.signal === 'traces') {
        this.span.read(cursor, end);
        this.lines.addSpan(this.span, cursor.bytes, batches.page);
        batches.addRow(cursor.bytes, this.span.traceId, resource);
      } else {
        this.log.read(cursor, end);
        this.lines.addLog(this.log, cursor.bytes, batches.page);
        batches.addRow(cursor.bytes, this.log.traceId, resource);
      }
    } catch (error) {
      if (!(error instanceof UnusualShape)) throw error;
      batches.addRecords(this.readGenerally(cursor.bytes.subarray(start, end)), resource);
    }
    cursor.position = end;
  }

  /** One span or log record through the general decoder, as a request of its own. */
  private readGenerally(item: Buffer): readonly TelemetryRecord[] {
    const request = this.general.codec.decode(this.signal, wrapped(EMPTY, ENGINE_SCOPE, item));
    const { delivery, rejectedCount } = this.general.decoder.decode(request);
    // What is rejected or passed on is counted and named by the general decoder, over the whole request.
    if (rejectedCount > 0 || delivery.foreign.length > 0) throw UNUSUAL;
    return delivery.batches.flatMap(({ records }) => records);
  }

  /** @throws UNUSUAL for another service's */
  private resourceOf(resource: Buffer, scope: Buffer): Resource {
    const isShort = resource.length + scope.length <= MAX_RESOURCE_BYTES;
    const found = isShort ? this.rememberedResource(resource, scope) : this.readResource(resource, scope);
    if (found === NOT_OURS) throw UNUSUAL;
    return found;
  }

  private rememberedResource(resource: Buffer, scope: Buffer): Resource | null {
    const key = `${resource.length}:${resource.toString('latin1')}${scope.toString('latin1')}`;
    let found = this.resources.get(key);
    if (found === undefined) {
      found = this.readResource(resource, scope);
      if (this.resources.size >= MAX_RESOURCES) this.resources.clear();
      this.resources.set(key, found);
    }
    return found;
  }

  private readResource(resource: Buffer, scope: Buffer): Resource | null {
    const request = this.general.codec.decode('traces', wrapped(resource, scope, undefined));
    // Both signals have them in the same fields.
    const group = request.signal === 'traces' ? request.resources[0] : undefined;
    const first = group?.scopes[0];
    if (group === undefined || first === undefined || !isEngine(group, first)) return NOT_OURS;
    return resourceOf(group, first);
  }
}

const EMPTY = Buffer.alloc(0);
/** An InstrumentationScope with the engine's name, so that an item on its own is known as the engine's. */
const ENGINE_SCOPE = lengthDelimited(1, Buffer.from('dbt-core'));

/** A request of one span or log record (or none) of this resource and scope. */
function wrapped(resource: Buffer, scope: Buffer, item: Buffer | undefined): Buffer {
  const group = Buffer.concat([lengthDelimited(1, scope), item === undefined ? EMPTY : lengthDelimited(2, item)]);
  return lengthDelimited(1, Buffer.concat([lengthDelimited(1, resource), lengthDelimited(2, group)]));
}

/**
 * What a request's items become, in the order in which they came: rows of the page, each batch of one trace and resource,
 * and between them records that the general decoder made.
 */
class DecodedBatches {
  readonly list: RecordBatch[] = [];
  private recordCount = 0;
  /** The latest batch, while it can grow. */
  private rows: PageBatch | undefined;
  private traceId = '' as TraceId;
  private readonly traceIdBytes = Buffer.alloc(16);

  constructor(readonly page: RecordPage) {}

  /** The page's last row belongs to the trace whose id stands at `traceId`. */
  addRow(from: Buffer, traceId: number, resource: Resource): void {
    const { page } = this;
    const { rowCount } = page;
    this.count(page.recordCount(rowCount - 1));
    const isSameTrace = this.traceId !== '' && isSame(this.traceIdBytes, from, traceId, traceId + 16);
    if (!isSameTrace) {
      from.copy(this.traceIdBytes, 0, traceId, traceId + 16);
      this.traceId = this.traceIdBytes.toString('hex') as TraceId;
    }
    if (isSameTrace && this.rows?.resource === resource) {
      this.rows.to = rowCount;
      return;
    }
    this.rows = new PageBatch(this.traceId, resource, page, rowCount - 1, rowCount);
    this.list.push(this.rows);
  }

  addRecords(records: readonly TelemetryRecord[], resource: Resource): void {
    this.count(records.length);
    const [first] = records;
    if (first === undefined) return;
    this.rows = undefined;
    this.list.push({ traceId: first.traceId, resource, records });
  }

  private count(more: number): void {
    this.recordCount += more;
    checkRecordCount(this.recordCount);
  }
}
