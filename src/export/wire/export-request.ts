import { BufferPool } from '../../core/bytes.js';
import type { OtlpCodec, OtlpEncoding } from '../../otlp/otlp-codec.js';
import { LENGTH, tagOf } from '../../otlp/wire-type.js';
import { varintSize } from '../../record/arena.js';
import type { Signal } from '../../record/record-batch.js';
import { type ExportGroup, SCHEMA_URL_BYTES } from './export-group.js';
import { cutRanges, ItemRange } from './item-window.js';
import { WireWriter } from './wire-writer.js';

/** Items of one signal, in order, to be sent together; at least one. */
export interface ItemBatch {
  readonly signal: Signal;
  readonly ranges: readonly ItemRange[];
}

/** One request's body. */
export interface EncodedRequest {
  readonly body: Uint8Array;
  /** Items in it, from the front of the batch. */
  readonly itemCount: number;
}

/** Loads both encodings of OTLP. */
export type LoadCodecs = () => Promise<{ readonly json: OtlpCodec; readonly protobuf: OtlpCodec }>;

const BODIES = new BufferPool();

/** Puts items together to OTLP's export requests: in protobuf, in which they are encoded already, or that in JSON. */
export class RequestEncoder {
  /** @param maxBodyBytes of a body before compression, where it has more than one item */
  constructor(
    readonly encoding: OtlpEncoding,
    private readonly codecs: LoadCodecs,
    private readonly maxBodyBytes: number,
  ) {}

  /** Nobody reads a body of this encoder any more. To be called once at most; where it is not, its bytes are not used again. */
  giveBack(body: Uint8Array): void {
    if (this.encoding === 'protobuf') BODIES.giveBack(Buffer.from(body.buffer));
  }

  /** As many items from the front as stay below the limit; a single item that is larger goes alone. */
  async encode({ signal, ranges }: ItemBatch): Promise<EncodedRequest> {
    const { maxBodyBytes } = this;
    const request = protobufRequest(ranges, maxBodyBytes);
    if (this.encoding === 'protobuf') return request;
    const { json, protobuf } = await this.codecs();
    const toJson = (body: Uint8Array) => json.encode(protobuf.decode(signal, body));
    let { itemCount } = request;
    let body = toJson(request.body);
    while (body.byteLength > maxBodyBytes && itemCount > 1) {
      // Sizes vary from item to item, so the guess may need another round.
      const guess = Math.floor((itemCount * maxBodyBytes) / body.byteLength);
      itemCount = Math.max(1, Math.min(guess, itemCount - 1));
      body = toJson(protobufRequest(cutRanges(ranges, itemCount)[0], maxBodyBytes).body);
    }
    return { body, itemCount };
  }
}

/** Puts as many items into a request as stay below a limit, or one that is larger. */
function protobufRequest(ranges: readonly ItemRange[], maxBytes: number): EncodedRequest {
  const request = new RequestSlices();
  for (const range of ranges) if (!request.add(range, maxBytes)) break;
  return { body: request.finish(), itemCount: request.itemCount };
}

const RESOURCE_GROUP = tagOf(1, LENGTH);
const SCOPE_GROUP = tagOf(2, LENGTH);
/** What stands round a resource's and a scope's messages, at most: tags, lengths, and which conventions they follow. */
const FRAME_BYTES = 16 + SCHEMA_URL_BYTES.length;

interface ScopeItems {
  readonly head: Uint8Array;
  readonly ranges: ItemRange[];
  byteCount: number;
}

interface ResourceItems {
  readonly head: Uint8Array;
  readonly scopes: Map<string, ScopeItems>;
}

/**
 * What a request's body is put together of: heads of resources and scopes in the order in which they first come, and slices of
 * windows, which are copied once. Items may be of several runs.
 */
class RequestSlices {
  private readonly resources = new Map<string, ResourceItems>();
  /** The request's length in bytes so far, or a few more. */
  private byteCount = 0;
  itemCount = 0;

  /** Adds as many items from the front of a range as there is room for; the first one of a request has room. @returns whether it took all */
  add(range: ItemRange, maxBytes: number): boolean {
    const { window, from, to } = range;
    const { group } = window;
    const room = maxBytes - this.byteCount - this.headBytes(group);
    let byteCount = 0;
    let index = from;
    for (; index < to; index++) {
      const itemBytes = window.endOf(index) - window.startOf(index);
      if (byteCount + itemBytes > room && this.itemCount + index > from) break;
      byteCount += itemBytes;
    }
    if (index === from) return false;
    this.byteCount += this.headBytes(group) + byteCount;
    this.itemCount += index - from;
    const scope = this.scopeOf(group);
    scope.ranges.push(index === to ? range : new ItemRange(window, from, index));
    scope.byteCount += byteCount;
    return index === to;
  }

  /** The request's body. */
  finish(): Uint8Array {
    const out = new WireWriter(BODIES.take(this.byteCount));
    for (const { head, scopes } of this.resources.values()) {
      let byteCount = head.length + SCHEMA_URL_BYTES.length;
      for (const scope of scopes.values()) byteCount += 1 + framed(sizeOf(scope));
      out.tag(RESOURCE_GROUP);
      out.varint(byteCount);
      out.raw(head);
      for (const scope of scopes.values()) writeScope(out, scope);
      out.raw(SCHEMA_URL_BYTES);
    }
    return out.bytes.subarray(0, out.length);
  }

  /** What a resource and a scope take that the request does not have yet. */
  private headBytes({ resourceKey, scopeKey, resourceBytes, scopeBytes }: ExportGroup): number {
    const resource = this.resources.get(resourceKey);
    const scopeHead = scopeBytes.length + FRAME_BYTES;
    if (resource === undefined) return resourceBytes.length + FRAME_BYTES + scopeHead;
    return resource.scopes.has(scopeKey) ? 0 : scopeHead;
  }

  private scopeOf({ resourceKey, scopeKey, resourceBytes, scopeBytes }: ExportGroup): ScopeItems {
    let resource = this.resources.get(resourceKey);
    if (resource === undefined) {
      resource = { head: resourceBytes, scopes: new Map() };
      this.resources.set(resourceKey, resource);
    }
    let scope = resource.scopes.get(scopeKey);
    if (scope === undefined) {
      scope = { head: scopeBytes, ranges: [], byteCount: 0 };
      resource.scopes.set(scopeKey, scope);
    }
    return scope;
  }
}

function writeScope(out: WireWriter, scope: ScopeItems): void {
  out.tag(SCOPE_GROUP);
  out.varint(sizeOf(scope));
  out.raw(scope.head);
  for (const range of scope.ranges) writeItems(out, range);
  out.raw(SCHEMA_URL_BYTES);
}

/** Copies a range's items, those that stand side by side together. */
function writeItems(out: WireWriter, { window, from, to }: ItemRange): void {
  const { source } = window.block.out;
  for (let index = from; index < to; ) {
    const start = window.startOf(index);
    let end = window.endOf(index++);
    while (index < to && window.startOf(index) === end) end = window.endOf(index++);
    out.append(source, start, end);
  }
}

function sizeOf(scope: ScopeItems): number {
  return scope.head.length + scope.byteCount + SCHEMA_URL_BYTES.length;
}

/** A message's bytes with its length before them. */
function framed(byteCount: number): number {
  return byteCount + varintSize(byteCount);
}
