import { compatibilityPartitioner, ProduceAcks, Producer } from '@platformatic/kafka';
import type { KafkaConnection } from '../../config/kafka-settings.js';
import type { Clock } from '../../core/clock.js';
import { connectionOptions, partitionCountsOf, problemOf } from './connection.js';

/** A message for a topic. */
export interface KafkaMessage {
  readonly topic: string;
  /** Trace id in lower-case hex, which says the partition; `null` for any partition. */
  readonly key: string | null;
  readonly value: Uint8Array;
  readonly headers?: Readonly<Record<string, string>>;
}

/** A message was not written, as far as is known; writing it again is safe, and may write it twice. */
export class KafkaError extends Error {
  override readonly name = 'KafkaError';
}

/** How messages are written. */
export interface KafkaProducerDeps {
  readonly clock: Clock;
  /** How long connecting, and an answer, may take. */
  readonly timeoutMs: number;
  readonly compression: 'none' | 'gzip';
}

/** Messages are kept below this, in bytes before compression: a broker takes 1,048,588 bytes with what is round them, unless told otherwise. */
const MAX_MESSAGE_BYTES = 1_000_000;
/** A broker that refuses even this has another reason than its size, in bytes. */
const MIN_MESSAGE_BYTES = 1_024;

interface OpenedClient {
  readonly producer: Producer<Buffer, Buffer, Buffer, Buffer>;
  /** What is under way with it. */
  readonly sends: Set<Promise<unknown>>;
}

/**
 * Writes messages to topics, each acknowledged by all replicas that are in step (`acks=all`). One attempt; who calls tries
 * again, which may write a message twice. After a failed connection the next attempt makes a new one, and reads the files for TLS again.
 */
export class KafkaProducer {
  private readonly limits = new Map<string, number>();
  private readonly ending = new AbortController();
  private opening: Promise<OpenedClient> | undefined;

  constructor(
    private readonly connection: KafkaConnection,
    private readonly deps: KafkaProducerDeps,
  ) {}

  /** How large a message for a topic should be at most, in bytes: less than before where the broker has refused one. */
  maxBytes(topic: string): number {
    return this.limits.get(topic) ?? MAX_MESSAGE_BYTES;
  }

  /**
   * Resolves when the brokers have the message, or when it is larger than they take: then `maxBytes` is less than half of it.
   * @throws KafkaError
   */
  send(message: KafkaMessage): Promise<'written' | 'tooLarge'> {
    return this.sendTogether([message]);
  }

  /**
   * The same for several messages, which go to each broker in one request; they should be no larger together than one may be.
   * @returns `tooLarge` when one of them is, or all of them together are: some may be written
   */
  async sendTogether(messages: readonly KafkaMessage[]): Promise<'written' | 'tooLarge'> {
    try {
      return await this.write(messages, await this.open());
    } catch (error) {
      throw new KafkaError(problemOf(error), { cause: error });
    }
  }

  /** How many partitions topics have now. @throws KafkaError when there is no such topic, or no answer */
  async partitionCounts(topics: readonly string[]): Promise<ReadonlyMap<string, number>> {
    try {
      const { producer } = await this.open();
      return await partitionCountsOf(producer, topics);
    } catch (error) {
      throw new KafkaError(problemOf(error), { cause: error });
    }
  }

  /** Ends connections; what is under way fails. */
  async close(): Promise<void> {
    this.ending.abort();
    const client = await this.opening?.catch(() => undefined);
    await client?.producer.close().catch(() => undefined);
  }

  private async write(messages: readonly KafkaMessage[], client: OpenedClient): Promise<'written' | 'tooLarge'> {
    const sending = client.producer.send({ acks: ProduceAcks.ALL, messages: messages.map(clientMessage) });
    client.sends.add(sending);
    try {
      await sending;
      return 'written';
    } catch (error) {
      if (hasCause(error, 'apiId', 'MESSAGE_TOO_LARGE') || hasCause(error, 'apiId', 'RECORD_LIST_TOO_LARGE')) {
        if (messages.length === 1) for (const message of messages) this.noteTooLarge(message);
        return 'tooLarge';
      }
      if (CONNECTION_ERRORS.some((code) => hasCause(error, 'code', code))) this.leave(client);
      throw error;
    } finally {
      client.sends.delete(sending);
    }
  }

  private noteTooLarge({ topic, value }: KafkaMessage): void {
    const less = Math.max(MIN_MESSAGE_BYTES, Math.floor(value.length / 2));
    this.limits.set(topic, Math.min(this.maxBytes(topic), less));
  }

  private open(): Promise<OpenedClient> {
    this.opening ??= this.connect().catch((error: unknown) => {
      this.opening = undefined;
      throw error;
    });
    return this.opening;
  }

  private async connect(): Promise<OpenedClient> {
    const { clock, timeoutMs, compression } = this.deps;
    const options = await connectionOptions(this.connection, { clock, signal: this.ending.signal });
    const producer = new Producer<Buffer, Buffer, Buffer, Buffer>({
      ...options,
      // Kafka's own, so that a key is in the same partition whoever writes it.
      partitioner: compatibilityPartitioner,
      compression,
      timeout: timeoutMs,
      connectTimeout: timeoutMs,
      requestTimeout: timeoutMs,
      // What is tried again is the whole.
      retries: 0,
    });
    const client = { producer, sends: new Set<Promise<unknown>>() };
    if (this.ending.signal.aborted) await producer.close();
    return client;
  }

  /** Further messages go over new connections; those that are under way end over the old ones. */
  private leave(client: OpenedClient): void {
    const { opening } = this;
    void opening?.then(async (current) => {
      if (current !== client || this.opening !== opening) return;
      this.opening = undefined;
      await Promise.allSettled(client.sends);
      await client.producer.close().catch(() => undefined);
    });
  }
}

const CONNECTION_ERRORS = ['PLT_KFK_NETWORK', 'PLT_KFK_TIMEOUT', 'PLT_KFK_AUTHENTICATION'] as const;

/** Whether the client's error, or one that it wraps, has a property of this value. */
function hasCause(error: unknown, property: string, value: string): boolean {
  if (!(error instanceof Error)) return false;
  if (Reflect.get(error, property) === value) return true;
  const causes = error instanceof AggregateError ? error.errors : [error.cause];
  return causes.some((cause) => hasCause(cause, property, value));
}

function clientMessage({ topic, key, value, headers = {} }: KafkaMessage) {
  const named = Object.entries(headers).map(([name, text]) => [Buffer.from(name), Buffer.from(text)] as const);
  return { topic, value: bufferOf(value), headers: new Map(named), ...(key !== null && { key: Buffer.from(key) }) };
}

function bufferOf(bytes: Uint8Array): Buffer {
  return Buffer.isBuffer(bytes) ? bytes : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}
