import {
  JsonLogsSerializer,
  JsonTraceSerializer,
  ProtobufLogsSerializer,
  ProtobufTraceSerializer,
} from '@opentelemetry/otlp-transformer';
import type { OtlpEncoding } from '../otlp/otlp-codec.js';
import type { ItemBatch } from './item-batch.js';

/** One request's body. */
export interface EncodedBatch {
  readonly body: Uint8Array;
  /** Items in it, from the front of the batch. */
  readonly itemCount: number;
}

/** Bodies are kept below this, in bytes before compression; the Collector takes 20 MiB over HTTP, many gateways 4 MiB or more. */
const MAX_BODY_BYTES = 4 * 1024 * 1024;

/** Encodes items as OTLP's export requests, with OpenTelemetry's own serialisers. */
export class OtlpEncoder {
  constructor(
    readonly encoding: OtlpEncoding,
    private readonly maxBodyBytes = MAX_BODY_BYTES,
  ) {}

  /** As many items from the front as stay below the limit; a single item that is larger goes alone. */
  encode(batch: ItemBatch): EncodedBatch {
    let itemCount = batch.items.length;
    let body = this.serialize(batch);
    while (body.byteLength > this.maxBodyBytes && itemCount > 1) {
      // Sizes vary from item to item, so the guess may need another round.
      const guess = Math.floor((itemCount * this.maxBodyBytes) / body.byteLength);
      itemCount = Math.max(1, Math.min(guess, itemCount - 1));
      body = this.serialize(firstOf(batch, itemCount));
    }
    return { body, itemCount };
  }

  private serialize(batch: ItemBatch): Uint8Array {
    const isJson = this.encoding === 'json';
    const body =
      batch.signal === 'traces'
        ? (isJson ? JsonTraceSerializer : ProtobufTraceSerializer).serializeRequest([...batch.items])
        : (isJson ? JsonLogsSerializer : ProtobufLogsSerializer).serializeRequest([...batch.items]);
    if (body === undefined) throw new Error(`${batch.items.length} items could not be serialised as OTLP`);
    return body;
  }
}

function firstOf(batch: ItemBatch, count: number): ItemBatch {
  return batch.signal === 'traces'
    ? { signal: 'traces', items: batch.items.slice(0, count) }
    : { signal: 'logs', items: batch.items.slice(0, count) };
}
