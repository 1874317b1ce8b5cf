import type { KafkaRequests } from '../config/kafka-settings.js';
import { reasonOf } from '../core/errors.js';
import { BRIDGE_ATTRIBUTE } from '../otlp/bridge-attributes.js';
import type { Signal } from '../record/record-batch.js';
import {
  ACCEPTED,
  type BatchOutcome,
  BROKEN_OFF,
  type Destination,
  NOT_ASKED,
  refused,
  retryable,
  type SendResult,
} from './destination.js';
import { type ItemBatch, type LoadCodecs, RequestEncoder } from './wire/export-request.js';
import { countOf, type ItemRange } from './wire/item-window.js';
import { DecodedSpan, decodeLog } from './wire/wire-reader.js';

/** Writes messages to topics of Kafka; one attempt each. */
export interface TopicWriter {
  /** Returns how large a message for a topic should be at most, in bytes; less once the broker has refused one as too large. */
  maxBytes(topic: string): number;
  /** Resolves when the brokers have the message, or refuse it as too large. @throws Error in any other case */
  send(message: {
    readonly topic: string;
    readonly key: string | null;
    readonly value: Uint8Array;
  }): Promise<'written' | 'tooLarge'>;
  close(): Promise<void>;
}

/** The parts of a Kafka destination. */
export interface KafkaDestinationDeps {
  readonly producer: TopicWriter;
  /** Loads both encodings of OTLP, for requests in JSON and the telemetry of other services. */
  readonly codecs: LoadCodecs;
  /** Masks secrets in what the client says. */
  readonly masked: (message: string) => string;
}

/**
 * Topics of Kafka as a destination: requests in OTLP, one of a run in each message, with its trace id as key. A message that
 * is larger than the broker takes is split; a span or log record that is larger by itself is refused for good.
 */
export class KafkaDestination implements Destination {
  readonly isOneRunAtATime = true;

  constructor(
    readonly name: string,
    readonly signals: readonly Signal[],
    private readonly settings: KafkaRequests,
    private readonly deps: KafkaDestinationDeps,
  ) {}

  async send(batch: ItemBatch, abort: AbortSignal): Promise<BatchOutcome> {
    if (!this.signals.includes(batch.signal)) return { result: NOT_ASKED, itemCount: countOf(batch.ranges) };
    const { producer, codecs } = this.deps;
    const topic = this.settings.topics[batch.signal];
    const { traceId: key } = firstOf(batch);
    for (;;) {
      const encoder = new RequestEncoder(this.encoding, codecs, producer.maxBytes(topic));
      const { body, itemCount } = await encoder.encode(batch);
      const result = await produce({ topic, key, value: body }, this.deps, abort);
      if (result !== 'tooLarge') return { result, itemCount };
      if (itemCount === 1) return { result: refusedItem(batch, topic, body.length), itemCount };
    }
  }

  async forward(signal: Signal, body: string, abort: AbortSignal): Promise<SendResult> {
    if (!this.signals.includes(signal)) return NOT_ASKED;
    const { producer } = this.deps;
    // Loaded where they are needed, as the encodings are: most exports are of the engine's telemetry alone.
    const [codecs, { TraceSplitter }, { splitRequest }] = await Promise.all([
      this.deps.codecs(),
      import('../otlp/wire/trace-requests.js'),
      import('../otlp/wire/wire-decoder.js'),
    ]);
    const topic = this.settings.topics[signal];
    const splitter = new TraceSplitter(signal, codecs);
    const { requests } = await splitter.split('json', Buffer.from(body), producer.maxBytes(topic));
    let refused: SendResult | undefined;
    for (const { traceId, bytes } of requests) {
      const waiting = [bytes];
      for (let next = waiting.pop(); next !== undefined; next = waiting.pop()) {
        const value = this.encoding === 'json' ? codecs.json.encode(codecs.protobuf.decode(signal, next)) : next;
        const result = await produce({ topic, key: traceId, value }, this.deps, abort);
        if (result === 'tooLarge') {
          const pieces = [...splitRequest(next, Math.ceil(next.length / 2))].filter((one) => one.length > 0);
          if (pieces.length > 1) waiting.push(...pieces.reverse());
          else refused = tooLarge(`a record of trace ${traceId}`, topic, value.length);
        } else if (result.kind !== 'accepted') return result;
      }
    }
    return refused ?? ACCEPTED;
  }

  async close(): Promise<void> {
    await this.deps.producer.close();
  }

  private get encoding(): 'protobuf' | 'json' {
    return this.settings.encoding === 'otlp_json' ? 'json' : 'protobuf';
  }
}

/**
 * A topic of Kafka as a destination for records as they are: lines of JSONL, those of one run in each message, with its trace
 * id as key. Each record comes as a log record that has its line.
 */
export class KafkaJsonlDestination implements Destination {
  readonly isOneRunAtATime = true;
  readonly signals = ['logs'] as const;

  constructor(
    readonly name: string,
    private readonly topic: string,
    private readonly deps: Pick<KafkaDestinationDeps, 'producer' | 'masked'>,
  ) {}

  async send(batch: ItemBatch, abort: AbortSignal): Promise<BatchOutcome> {
    if (batch.signal !== 'logs') return { result: NOT_ASKED, itemCount: countOf(batch.ranges) };
    const { topic } = this;
    const { traceId: key } = firstOf(batch);
    for (;;) {
      const lines = linesThatFit(batch.ranges, this.deps.producer.maxBytes(topic));
      const value = Buffer.concat(lines);
      const result = await produce({ topic, key, value }, this.deps, abort);
      if (result !== 'tooLarge') return { result, itemCount: lines.length };
      if (lines.length === 1) return { result: refusedItem(batch, topic, value.length), itemCount: 1 };
    }
  }

  async close(): Promise<void> {
    await this.deps.producer.close();
  }
}

/** Takes as many lines from the front as have so many bytes together, or one that has more. */
function linesThatFit(ranges: readonly ItemRange[], maxBytes: number): readonly Buffer[] {
  const lines: Buffer[] = [];
  let byteCount = 0;
  for (const { window, from, to } of ranges) {
    for (let index = from; index < to; index++) {
      const line = Buffer.from(`${lineOf(window.messageOf(index))}\n`);
      if (lines.length > 0 && byteCount + line.length > maxBytes) return lines;
      lines.push(line);
      byteCount += line.length;
    }
  }
  return lines;
}

/** Returns a record's line; that of a log record where it stands for none, as a test of the destination does. */
function lineOf(message: Buffer): string {
  const log = decodeLog(message);
  const line = log.attributes[BRIDGE_ATTRIBUTE.record];
  if (typeof line === 'string') return line;
  const [seconds, nanos] = log.hrTime;
  return JSON.stringify({
    record_type: 'LogRecord',
    trace_id: log.traceId,
    span_id: log.spanContext?.spanId ?? null,
    span_name: null,
    event_id: null,
    time_unix_nano: `${BigInt(seconds) * 1_000_000_000n + BigInt(nanos)}`,
    severity_number: log.severityNumber,
    severity_text: log.severityText,
    body: log.body,
    event_type: log.eventName,
    attributes: log.attributes,
  });
}

async function produce(
  message: Parameters<TopicWriter['send']>[0],
  { producer, masked }: Pick<KafkaDestinationDeps, 'producer' | 'masked'>,
  abort: AbortSignal,
): Promise<SendResult | 'tooLarge'> {
  if (abort.aborted) return BROKEN_OFF;
  let onAbort = () => {};
  const brokenOff = new Promise<SendResult>((resolve) => {
    onAbort = () => resolve(BROKEN_OFF);
  });
  abort.addEventListener('abort', onAbort, { once: true });
  try {
    const sent = await Promise.race([producer.send(message), brokenOff]);
    return sent === 'written' ? ACCEPTED : sent;
  } catch (error) {
    return retryable(masked(reasonOf(error)));
  } finally {
    abort.removeEventListener('abort', onAbort);
  }
}

function refusedItem(batch: ItemBatch, topic: string, byteCount: number): SendResult {
  const { what, traceId } = firstOf(batch);
  return tooLarge(`${what} of trace ${traceId}`, topic, byteCount);
}

/** Describes what the first item of a batch is, in words, and its trace's id. */
function firstOf({ signal, ranges }: ItemBatch): { readonly what: string; readonly traceId: string | null } {
  const [first] = ranges;
  if (first === undefined) return { what: 'nothing', traceId: null };
  const message = first.window.messageOf(first.from);
  if (signal === 'logs') return { what: 'a log record', traceId: decodeLog(message).traceId };
  const span = new DecodedSpan(message, first.window.group);
  return { what: `the span ${span.name}`, traceId: span.spanContext().traceId };
}

function tooLarge(what: string, topic: string, byteCount: number): SendResult {
  return refused(
    0,
    `${what} has ${byteCount} bytes, more than the broker takes for ${topic}; raise the topic's max.message.bytes`,
  );
}
