import type { InstrumentationScope } from '@opentelemetry/core';
import type { Resource } from '@opentelemetry/resources';
import { LENGTH, tagOf, VARINT } from '../../otlp/wire-type.js';
import { encodeAttributes, WireWriter } from './wire-writer.js';

const RESOURCE = tagOf(1, LENGTH);
const RESOURCE_ATTRIBUTES = tagOf(1, LENGTH);
const RESOURCE_DROPPED = tagOf(2, VARINT);
const SCOPE = tagOf(1, LENGTH);
const SCOPE_NAME = tagOf(1, LENGTH);
const SCOPE_VERSION = tagOf(2, LENGTH);

/** The resource and scope that items of a request have in common, encoded once. Equal ones of several runs share a key. */
export class ExportGroup {
  /** Field 1 of ScopeSpans or ScopeLogs. */
  readonly scopeBytes: Uint8Array;
  readonly scopeKey: string;
  private encoded: Buffer;

  constructor(
    private described: Resource,
    readonly scope: InstrumentationScope,
  ) {
    const scopeBytes = encodeScope(scope);
    this.encoded = encodeResource(described);
    this.scopeBytes = scopeBytes;
    this.scopeKey = scopeBytes.toString('latin1');
  }

  get resource(): Resource {
    return this.described;
  }

  /** Field 1 of ResourceSpans or ResourceLogs. */
  get resourceBytes(): Uint8Array {
    return this.encoded;
  }

  get resourceKey(): string {
    return this.encoded.toString('latin1');
  }

  /** More is known of the resource, before any of its items were given away. */
  describe(resource: Resource): void {
    this.described = resource;
    this.encoded = encodeResource(resource);
  }
}

function encodeResource(resource: Resource): Buffer {
  const out = new WireWriter(256);
  out.tag(RESOURCE);
  const start = out.open();
  encodeAttributes(out, RESOURCE_ATTRIBUTES, resource.attributes);
  out.tag(RESOURCE_DROPPED);
  out.varint(0);
  out.close(start);
  return out.bytes.subarray(0, out.length);
}

function encodeScope(scope: InstrumentationScope): Buffer {
  const out = new WireWriter(64);
  out.tag(SCOPE);
  const start = out.open();
  out.tag(SCOPE_NAME);
  out.text(scope.name);
  if (scope.version !== undefined && scope.version !== '') {
    out.tag(SCOPE_VERSION);
    out.text(scope.version);
  }
  out.close(start);
  return out.bytes.subarray(0, out.length);
}
