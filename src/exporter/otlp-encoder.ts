import type { InstrumentationScope } from '@opentelemetry/core';
import { JsonLogsSerializer, JsonTraceSerializer } from '@opentelemetry/otlp-transformer';
import type { Resource } from '@opentelemetry/resources';
import type { OtlpEncoding } from '../otlp/otlp-codec.js';
import type { ItemBatch } from './item-batch.js';
import { type EncodedItem, isEncoded } from './wire/encoded-item.js';
import { ExportGroup } from './wire/export-group.js';
import { ItemEncoder } from './wire/item-encoder.js';
import { RequestAssembler } from './wire/request-assembler.js';

/** One request's body. */
export interface EncodedBatch {
  readonly body: Uint8Array;
  /** Items in it, from the front of the batch. */
  readonly itemCount: number;
}

/** Bodies are kept below this, in bytes before compression; the Collector takes 20 MiB over HTTP, many gateways 4 MiB or more. */
const MAX_BODY_BYTES = 4 * 1024 * 1024;

/**
 * Encodes items as OTLP's export requests: in protobuf with a writer of our own, to which most items come encoded already;
 * in JSON with OpenTelemetry's own serialisers.
 */
export class OtlpEncoder {
  private readonly groups = new WeakMap<Resource, WeakMap<InstrumentationScope, ExportGroup>>();

  constructor(
    readonly encoding: OtlpEncoding,
    private readonly maxBodyBytes = MAX_BODY_BYTES,
  ) {}

  /** As many items from the front as stay below the limit; a single item that is larger goes alone. */
  encode(batch: ItemBatch): EncodedBatch {
    return this.encoding === 'json' ? this.encodeJson(batch) : this.encodeProtobuf(batch);
  }

  private encodeProtobuf(batch: ItemBatch): EncodedBatch {
    const request = new RequestAssembler();
    const encoder = new ItemEncoder();
    for (let index = 0; index < batch.items.length; index++) {
      const item = this.encodedItem(batch, index, encoder);
      const isTooMuch = request.byteCount + item.end - item.start > this.maxBodyBytes;
      if (isTooMuch && request.itemCount > 0) break;
      request.add(item);
    }
    return { body: request.finish(), itemCount: request.itemCount };
  }

  private encodedItem(batch: ItemBatch, index: number, encoder: ItemEncoder): EncodedItem {
    if (batch.signal === 'traces') {
      const span = itemAt(batch.items, index);
      return isEncoded(span) ? span : encoder.span(span, this.groupOf(span.resource, span.instrumentationScope));
    }
    const log = itemAt(batch.items, index);
    return isEncoded(log) ? log : encoder.log(log, this.groupOf(log.resource, log.instrumentationScope));
  }

  private groupOf(resource: Resource, scope: InstrumentationScope): ExportGroup {
    let scopes = this.groups.get(resource);
    if (scopes === undefined) {
      scopes = new WeakMap();
      this.groups.set(resource, scopes);
    }
    let group = scopes.get(scope);
    if (group === undefined) {
      group = new ExportGroup(resource, scope);
      scopes.set(scope, group);
    }
    return group;
  }

  private encodeJson(batch: ItemBatch): EncodedBatch {
    let itemCount = batch.items.length;
    let body = serializeJson(batch, itemCount);
    while (body.byteLength > this.maxBodyBytes && itemCount > 1) {
      // Sizes vary from item to item, so the guess may need another round.
      const guess = Math.floor((itemCount * this.maxBodyBytes) / body.byteLength);
      itemCount = Math.max(1, Math.min(guess, itemCount - 1));
      body = serializeJson(batch, itemCount);
    }
    return { body, itemCount };
  }
}

function serializeJson(batch: ItemBatch, count: number): Uint8Array {
  const body =
    batch.signal === 'traces'
      ? JsonTraceSerializer.serializeRequest(batch.items.slice(0, count))
      : JsonLogsSerializer.serializeRequest(batch.items.slice(0, count));
  if (body === undefined) throw new Error(`${count} items could not be serialised as OTLP`);
  return body;
}

function itemAt<T>(items: readonly T[], index: number): T {
  const item = items[index];
  if (item === undefined) throw new Error(`there is no item ${index} in a batch of ${items.length}`);
  return item;
}
