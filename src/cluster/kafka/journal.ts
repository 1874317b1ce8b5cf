import type { KafkaJournalSettings } from '../../config/kafka-settings.js';
import { type Clock, FixedDelayTask, whenAborted } from '../../core/clock.js';
import { reasonOf } from '../../core/errors.js';
import type { Guard, Shortage } from '../../core/guard.js';
import type { HealthState } from '../../core/health.js';
import type { Component } from '../../core/lifecycle.js';
import type { Logger } from '../../core/logger.js';
import type { OtlpCodec, OtlpEncoding } from '../../otlp/otlp-codec.js';
import type { WholeBody } from '../../otlp/read-body.js';
import { RequestError } from '../../otlp/refusal.js';
import { cutRequest, type TraceRequests, TraceSplitter } from '../../otlp/wire/trace-requests.js';
import type { AcceptedBody, BodyConsumer } from '../../receiver/feature.js';
import { type Sender, UNKNOWN_SENDER } from '../../record/attributes.js';
import { ConsumeError, type Delivery, type RecordConsumer, type Signal } from '../../record/record-batch.js';
import { headersOf } from './connection.js';
import { KafkaError, type KafkaMessage, KafkaProducer } from './producer.js';
import { encodeRecords, RECORDS_HEADER, splitLines } from './record-lines.js';

/** What the journal works with. */
export interface KafkaJournalDeps {
  readonly codecs: Readonly<Record<OtlpEncoding, OtlpCodec>>;
  readonly clock: Clock;
  readonly logger: Logger;
}

export const JOURNAL_STATES = ['connecting', 'writing', 'waiting'] as const;

/** How the writing goes. */
export interface JournalStatus {
  /** `waiting`: Kafka does not take anything; it is tried again. */
  readonly state: (typeof JOURNAL_STATES)[number];
  /** Why; `null` while it writes. */
  readonly problem: string | null;
  /** Times that Kafka did not answer, or not with a yes, since the start. */
  readonly failureCount: number;
  /** By topic: what Kafka has taken since the start. */
  readonly topics: ReadonlyMap<string, { readonly messageCount: number; readonly byteCount: number }>;
}

/** How long Kafka may take to answer, in milliseconds: OTLP's senders wait for 10 s. */
const ANSWER_MS = 8_000;
/** How often Kafka is asked whether it is there, and has the topics, in milliseconds: what finds that it is away, or back. */
const CHECK_MS = 1_000;
/** When a request that was refused because Kafka is away may come again, in milliseconds: a broker needs seconds to start. */
const RETRY_AFTER_MS = 5_000;

/**
 * Writes requests to the topics that several machines share: a request is accepted when Kafka has it. It is cut by trace, and by
 * spans where it is longer than a message; a message's key is its trace id. While Kafka is away requests are refused at once.
 */
export class KafkaJournal implements Component, RecordConsumer, Guard, BodyConsumer {
  readonly name = 'journal';
  private readonly producer: KafkaProducer;
  private readonly splitters: Readonly<Record<Signal, TraceSplitter>>;
  private readonly counts = new Map<string, { messageCount: number; byteCount: number }>();
  private readonly checking: FixedDelayTask;
  private state: JournalStatus['state'] = 'connecting';
  private problem: string | null = null;
  private failureCount = 0;

  constructor(
    private readonly settings: KafkaJournalSettings,
    private readonly deps: KafkaJournalDeps,
  ) {
    const { codecs } = deps;
    this.producer = new KafkaProducer(settings, { ...deps, timeoutMs: ANSWER_MS, compression: 'none' });
    this.splitters = { traces: new TraceSplitter('traces', codecs), logs: new TraceSplitter('logs', codecs) };
    this.checking = new FixedDelayTask(
      CHECK_MS,
      deps.clock,
      () => this.check(),
      (error) => this.away(reasonOf(error)),
    );
    for (const topic of Object.values(settings.topics)) this.counts.set(topic, { messageCount: 0, byteCount: 0 });
  }

  get status(): JournalStatus {
    const { state, problem, failureCount, counts: topics } = this;
    return { state, problem, failureCount, topics };
  }

  health(): HealthState {
    const { state, problem, failureCount } = this;
    const details = { state, problem, failureCount };
    if (state === 'writing') return { ready: true, details };
    return { ready: false, reason: problem === null ? 'Kafka has not answered yet' : this.awayMessage(), details };
  }

  /** Does not wait for Kafka. */
  async start(): Promise<void> {
    this.checking.start(0);
  }

  async shutdown(deadline: AbortSignal): Promise<void> {
    await Promise.race([this.checking.stop(), whenAborted(deadline)]);
    await this.producer.close();
  }

  findShortage(): Shortage | undefined {
    return this.state === 'waiting' ? { message: this.awayMessage(), retryAfterMs: RETRY_AFTER_MS } : undefined;
  }

  onBody(): void {}

  /** @throws OtlpDecodeError; ConsumeError when Kafka is away; RequestError for a span that is larger than the topic takes */
  async consumeBody(signal: Signal, encoding: OtlpEncoding, body: WholeBody, sender: Sender): Promise<AcceptedBody> {
    const topic = this.settings.topics[signal];
    let found: TraceRequests;
    try {
      found = await this.splitters[signal].split(encoding, body.bytes(), this.producer.maxBytes(topic));
    } finally {
      body.release();
    }
    const { requests, itemCount, rejectedCount } = found;
    const headers = headersOf(sender);
    await this.accept(requests.map(({ traceId, bytes }) => ({ topic, key: traceId, value: bytes, headers })));
    return { itemCount, rejectedCount, rejectionMessage: rejectedCount === 0 ? '' : rejectionMessage(rejectedCount) };
  }

  /** Takes records that came another way than as a request, as lines. @throws ConsumeError, RequestError */
  async consume({ batches, passthrough }: Delivery): Promise<void> {
    const topic = this.settings.topics.traces;
    const messages = encodeRecords(batches).flatMap(({ traceId, header, lines }) =>
      splitLines(lines, this.producer.maxBytes(topic)).map((value) => ({
        topic,
        key: traceId,
        value,
        headers: { [RECORDS_HEADER]: header },
      })),
    );
    await this.accept(messages);
    for (const { signal, body: text } of passthrough) {
      const bytes = Buffer.from(text);
      const body = { byteLength: bytes.length, bytes: () => bytes, release: () => {} };
      await this.consumeBody(signal, 'json', body, UNKNOWN_SENDER);
    }
  }

  /** @throws ConsumeError when Kafka is away */
  private async accept(messages: readonly KafkaMessage[]): Promise<void> {
    try {
      await this.write(messages);
    } catch (cause) {
      if (!(cause instanceof KafkaError)) throw cause;
      this.away(cause.message);
      throw new ConsumeError('unavailable', this.awayMessage(), RETRY_AFTER_MS, { cause });
    }
  }

  /** Writes messages of one topic, as many together as one message may be large. @throws KafkaError, RequestError */
  private async write(messages: readonly KafkaMessage[]): Promise<void> {
    const { producer } = this;
    for (const batch of batchesOf(messages, (topic) => producer.maxBytes(topic))) {
      if ((await producer.sendTogether(batch)) === 'written') this.count(batch);
      // Which of them is too large, only each by itself says.
      else if (batch.length > 1) for (const one of batch) await this.write([one]);
      else for (const one of batch) await this.write(this.halvesOf(one));
    }
  }

  /** @throws RequestError where there is nothing to cut */
  private halvesOf(message: KafkaMessage): readonly KafkaMessage[] {
    const { topic, value } = message;
    const signal = topic === this.settings.topics.logs ? 'logs' : 'traces';
    const [bytes, maxBytes] = [bufferOf(value), this.producer.maxBytes(topic)];
    const areLines = message.headers !== undefined && RECORDS_HEADER in message.headers;
    const cut = areLines ? splitLines(bytes, maxBytes) : cutRequest(signal, bytes, maxBytes);
    const pieces = [...cut].flatMap((piece) => (piece === undefined || piece.length === 0 ? [] : [piece]));
    if (pieces.length > 1) return pieces.map((piece) => ({ ...message, value: piece }));
    throw new RequestError(
      'too_large',
      `A span or log record of this request, or log records of one span and one time together, have ${value.length} bytes, more than the topic ${topic} takes; max.message.bytes of the topic sets how many it takes.`,
    );
  }

  private count(batch: readonly KafkaMessage[]): void {
    for (const { topic, value } of batch) {
      const counts = this.counts.get(topic);
      if (counts === undefined) continue;
      counts.messageCount += 1;
      counts.byteCount += value.length;
    }
  }

  private async check(): Promise<void> {
    const { traces, logs } = this.settings.topics;
    const counts = await this.producer.partitionCounts([traces, logs]);
    const [traceParts, logParts] = [counts.get(traces), counts.get(logs)];
    if (traceParts === logParts) return this.back();
    // The spans and the log records of a run would come to two members of the group.
    const parts = `${traceParts} and ${logParts} partitions`;
    this.away(`the topics ${traces} and ${logs} have ${parts}; give both the same number`);
  }

  private back(): void {
    if (this.state !== 'writing') this.deps.logger.info({ ...this.settings.topics }, 'writing to Kafka');
    this.state = 'writing';
    this.problem = null;
  }

  private away(problem: string): void {
    this.failureCount += 1;
    if (problem !== this.problem)
      this.deps.logger.warn({ problem }, 'Kafka is away: requests are answered 503 until it is back');
    this.state = 'waiting';
    this.problem = problem;
  }

  private awayMessage(): string {
    return `Kafka, which is to have this request before it is accepted, is away (${this.problem}); send it again later.`;
  }
}

function rejectionMessage(count: number): string {
  return `${count} spans without a valid trace id were not kept; the rest was`;
}

/** Messages in their order, in lists of at most so many bytes; one that is larger is a list of its own. */
function* batchesOf(
  messages: readonly KafkaMessage[],
  maxBytes: (topic: string) => number,
): Generator<readonly KafkaMessage[]> {
  let batch: KafkaMessage[] = [];
  let byteCount = 0;
  for (const message of messages) {
    const messageBytes = message.value.length + headerBytes(message) + MESSAGE_OVERHEAD_BYTES;
    if (batch.length > 0 && byteCount + messageBytes > maxBytes(message.topic)) {
      yield batch;
      batch = [];
      byteCount = 0;
    }
    batch.push(message);
    byteCount += messageBytes;
  }
  if (batch.length > 0) yield batch;
}

/** What Kafka adds to a message, at most about: its key, the names of its headers, lengths. */
const MESSAGE_OVERHEAD_BYTES = 128;

function headerBytes({ headers = {} }: KafkaMessage): number {
  return Object.values(headers).reduce((sum, text) => sum + Buffer.byteLength(text), 0);
}

function bufferOf(bytes: Uint8Array): Buffer {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}
