import { LENGTH, tagOf } from '../../otlp/wire-type.js';
import type { EncodedItem } from './encoded-items.js';
import { varintSize, WireWriter } from './wire-writer.js';

const RESOURCE_GROUP = tagOf(1, LENGTH);
const SCOPE_GROUP = tagOf(2, LENGTH);
/** Tags and lengths round a resource's and a scope's messages, at most. */
const FRAME_BYTES = 16;

interface ScopeItems {
  readonly head: Uint8Array;
  /** Stretches of bytes, items that stand side by side in one. */
  readonly stretches: { readonly block: Buffer; readonly start: number; end: number }[];
  byteCount: number;
}

interface ResourceItems {
  readonly head: Uint8Array;
  readonly scopes: Map<string, ScopeItems>;
}

/**
 * Puts encoded items together to one OTLP request, grouped by resource and scope in the order in which they first come.
 * Items may be of several runs.
 */
export class RequestAssembler {
  private readonly resources = new Map<string, ResourceItems>();
  private lastGroup: EncodedItem['group'] | undefined;
  private lastScope: ScopeItems | undefined;
  /** The request's length in bytes so far, or a few more. */
  byteCount = 0;
  itemCount = 0;

  add(item: EncodedItem): void {
    const { lastScope } = this;
    const scope = lastScope !== undefined && this.lastGroup === item.group ? lastScope : this.scopeOf(item);
    const stretch = scope.stretches.at(-1);
    if (stretch?.block === item.block && stretch.end === item.start) stretch.end = item.end;
    else scope.stretches.push({ block: item.block, start: item.start, end: item.end });
    scope.byteCount += item.end - item.start;
    this.byteCount += item.end - item.start;
    this.itemCount++;
    this.lastGroup = item.group;
    this.lastScope = scope;
  }

  /** The request's body. */
  finish(): Uint8Array {
    const out = new WireWriter(this.byteCount);
    for (const { head, scopes } of this.resources.values()) {
      let byteCount = head.length;
      for (const scope of scopes.values()) byteCount += 1 + framed(sizeOf(scope));
      out.tag(RESOURCE_GROUP);
      out.varint(byteCount);
      out.raw(head);
      for (const scope of scopes.values()) writeScope(out, scope);
    }
    return out.bytes.subarray(0, out.length);
  }

  private scopeOf({ group }: EncodedItem): ScopeItems {
    let resource = this.resources.get(group.resourceKey);
    if (resource === undefined) {
      resource = { head: group.resourceBytes, scopes: new Map() };
      this.resources.set(group.resourceKey, resource);
      this.byteCount += group.resourceBytes.length + FRAME_BYTES;
    }
    let scope = resource.scopes.get(group.scopeKey);
    if (scope === undefined) {
      scope = { head: group.scopeBytes, stretches: [], byteCount: 0 };
      resource.scopes.set(group.scopeKey, scope);
      this.byteCount += group.scopeBytes.length + FRAME_BYTES;
    }
    return scope;
  }
}

function writeScope(out: WireWriter, scope: ScopeItems): void {
  out.tag(SCOPE_GROUP);
  out.varint(sizeOf(scope));
  out.raw(scope.head);
  for (const { block, start, end } of scope.stretches) {
    out.reserve(end - start);
    out.length += block.copy(out.bytes, out.length, start, end);
  }
}

function sizeOf(scope: ScopeItems): number {
  return scope.head.length + scope.byteCount;
}

/** A message's bytes with its length before them. */
function framed(byteCount: number): number {
  return byteCount + varintSize(byteCount);
}
