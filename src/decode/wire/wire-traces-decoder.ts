import type { OtlpCodec } from '../../otlp/otlp-codec.js';
import { LENGTH } from '../../otlp/wire-type.js';
import type { Resource } from '../../record/resource.js';
import type { TelemetryRecord } from '../../record/telemetry-record.js';
import type { AttributeSchema } from '../attribute-schema.js';
import { isEngine, resourceOf } from '../otlp-request-decoder.js';
import type { DecodedRequest, PieceDecoder, RequestDecoder } from '../request-decoder.js';
import { DecodedBatches } from './decoded-batches.js';
import { lengthDelimited } from './length-delimited.js';
import type { LineBuffer } from './line-buffer.js';
import { PagePool } from './page-pool.js';
import { SpanLines } from './span-lines.js';
import { SpanSlice } from './span-slice.js';
import { UNUSUAL, UnusualShape, WireCursor } from './wire-cursor.js';

/** Resources that are remembered by their bytes. */
const MAX_RESOURCES = 64;
/** With their scope; a longer one is read each time. */
const MAX_RESOURCE_BYTES = 16 * 1024;
/** The group is another service's, or not of the usual shape. */
const NOT_OURS = null;

/**
 * Decodes requests of spans straight from OTLP's bytes to lines of JSONL. It knows only the shapes that the engine sends;
 * a span of another shape is read by the general decoder, and so is a whole request that has other services' spans in it
 * or that cannot be read. What comes out is the same either way, which tests hold it to. The page that it writes to is
 * lent: whoever decodes calls the delivery's `release`.
 */
export class WireTracesDecoder implements PieceDecoder {
  private readonly lines: SpanLines;
  private readonly span = new SpanSlice();
  private readonly resources = new Map<string, Resource | null>();
  private readonly pages = new PagePool();

  constructor(
    schema: AttributeSchema,
    private readonly general: { readonly codec: OtlpCodec; readonly decoder: RequestDecoder },
  ) {
    this.lines = new SpanLines(schema);
  }

  decode(body: Uint8Array): DecodedRequest {
    const bytes = Buffer.from(body.buffer, body.byteOffset, body.byteLength);
    const lent = this.pages.take(bytes.length);
    try {
      const batches = new DecodedBatches(lent.page);
      this.readRequest(bytes, lent.out, batches);
      lent.page.lines = lent.out.bytes;
      let isLent = true;
      const release = () => {
        if (isLent) this.pages.giveBack(lent);
        isLent = false;
      };
      return { delivery: { batches: batches.list, foreign: [], release }, rejectedCount: 0, rejectionMessage: '' };
    } catch (error) {
      this.pages.giveBack(lent);
      if (!(error instanceof UnusualShape)) throw error;
      return this.general.decoder.decode(this.general.codec.decode('traces', body));
    }
  }

  private readRequest(bytes: Buffer, out: LineBuffer, batches: DecodedBatches): void {
    const cursor = new WireCursor(bytes);
    while (cursor.position < bytes.length) {
      if (cursor.varint32(bytes.length) !== ((1 << 3) | LENGTH)) throw UNUSUAL;
      this.readGroup(cursor, cursor.lengthEnd(bytes.length), out, batches);
    }
  }

  private readGroup(cursor: WireCursor, end: number, out: LineBuffer, batches: DecodedBatches): void {
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
        this.readScope(cursor, fieldEnd, resource, out, batches);
      } else if (tag === ((3 << 3) | LENGTH)) cursor.position = fieldEnd;
      else throw UNUSUAL;
    }
    // Nobody has looked yet whether it can be read.
    if (!hasScopes) this.resourceOf(resource, EMPTY);
  }

  private readScope(cursor: WireCursor, end: number, resource: Buffer, out: LineBuffer, batches: DecodedBatches): void {
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
        this.readSpan(cursor, fieldEnd, known, out, batches);
      } else if (tag === ((3 << 3) | LENGTH)) cursor.position = fieldEnd;
      else throw UNUSUAL;
    }
    if (known === undefined) this.resourceOf(resource, scope);
  }

  private readSpan(
    cursor: WireCursor,
    end: number,
    resource: Resource,
    out: LineBuffer,
    batches: DecodedBatches,
  ): void {
    const start = cursor.position;
    try {
      this.span.read(cursor, end);
      this.lines.add(this.span, cursor.bytes, out, batches.page);
      batches.addSpan(cursor.bytes, this.span.traceId, resource);
    } catch (error) {
      if (!(error instanceof UnusualShape)) throw error;
      batches.addRecords(this.readGenerally(cursor.bytes.subarray(start, end)), resource);
    }
    cursor.position = end;
  }

  /** One span through the general decoder, as a request of its own. */
  private readGenerally(span: Buffer): readonly TelemetryRecord[] {
    const request = this.general.codec.decode('traces', wrapped(EMPTY, ENGINE_SCOPE, span));
    const { delivery, rejectedCount } = this.general.decoder.decode(request);
    // Rejected spans are counted and named by the general decoder, over the whole request.
    if (rejectedCount > 0) throw UNUSUAL;
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
    const group = request.signal === 'traces' ? request.resources[0] : undefined;
    const first = group?.scopes[0];
    if (group === undefined || first === undefined || !isEngine(group, first)) return NOT_OURS;
    return resourceOf(group, first);
  }
}

const EMPTY = Buffer.alloc(0);
/** An InstrumentationScope with the engine's name, so that a span on its own is known as the engine's. */
const ENGINE_SCOPE = lengthDelimited(1, Buffer.from('dbt-core'));

/** A request of one span (or none) of this resource and scope. */
function wrapped(resource: Buffer, scope: Buffer, span: Buffer | undefined): Buffer {
  const scopeSpans = Buffer.concat([lengthDelimited(1, scope), span === undefined ? EMPTY : lengthDelimited(2, span)]);
  return lengthDelimited(1, Buffer.concat([lengthDelimited(1, resource), lengthDelimited(2, scopeSpans)]));
}
