import { isDeepStrictEqual } from 'node:util';
import {
  Admin,
  type CommitOptions,
  Consumer,
  type ConsumerGroupJoinPayload,
  compressionsAlgorithms,
  GenericError,
  ListOffsetTimestamps,
  type Message,
  type MessagesStream,
  MultipleErrors,
} from '@platformatic/kafka';
import { decompress } from 'fzstd';
import type { KafkaSourceSettings } from '../../config/kafka-settings.js';
import { type Clock, FixedDelayTask, pause, RetryPolicy, retry, whenAborted } from '../../core/clock.js';
import type { HealthState } from '../../core/health.js';
import type { Component } from '../../core/lifecycle.js';
import { groupBy } from '../../core/lists.js';
import type { Logger } from '../../core/logger.js';
import type { Reject, RejectFile } from '../../files/feature.js';
import type { OtlpEncoding } from '../../otlp/otlp-codec.js';
import { type Refusal, RequestError } from '../../otlp/refusal.js';
import type { BodyConsumer, ExportIntake } from '../../receiver/feature.js';
import type { Sender } from '../../record/attributes.js';
import type { RecordConsumer, Signal } from '../../record/record-batch.js';
import { connectionOptions, partitionCountsOf, problemOf, senderOf } from './connection.js';
import { rangeAssignor } from './range-assignor.js';
import { decodeRecords, RECORDS_HEADER } from './record-lines.js';

/** Partitions of the topics that a member of the group has, from one rebalance to the next. */
export interface Assignment {
  /** Of the group: one higher with each rebalance. */
  readonly generation: number;
  /** Those that the member has of any topic. */
  readonly partitions: ReadonlySet<number>;
  /** How many each topic has. */
  readonly partitionCounts: ReadonlyMap<string, number>;
}

/** A place in a partition from which on nothing is committed. */
export type PartitionOffset = CommitOptions['offsets'][number];

/** A message has records of a trace whose partition is another's; nothing of it was taken. */
export class MisplacedError extends Error {
  override readonly name = 'MisplacedError';
}

/** Decides what becomes of messages beyond the intake, and from when on they need not be read again. */
export interface Custody {
  /** Writes to their partitions what came on others (`MisplacedError`). */
  readonly writer: RecordConsumer & BodyConsumer;
  /**
   * Begins with partitions; those of before are over, and what was read of them and not committed is read again.
   * @param signal aborts when they are another's, or the program stops
   */
  begin(assignment: Assignment, signal: AbortSignal): Promise<void>;
  /**
   * The intake has taken a batch; nothing more is read until it resolves.
   * @param offsets behind it, by partition
   * @param signal as of `begin`
   */
  taken(
    offsets: readonly PartitionOffset[],
    commit: (offsets: readonly PartitionOffset[]) => Promise<void>,
    signal: AbortSignal,
  ): Promise<void>;
  /** Nothing more is read of the partitions, for whatever reason. @param isStopping the program ends: what can be committed is */
  end(isStopping: boolean): Promise<void>;
}

/** What is taken is durable, and committed at once. */
const COMMITTED_WHEN_TAKEN: Omit<Custody, 'writer'> = {
  begin: async () => {},
  taken: (offsets, commit) => commit(offsets),
  end: async () => {},
};

/** What reading works with. */
export interface KafkaSourceDeps {
  readonly intake: Pick<ExportIntake, 'makeRoom' | 'take' | 'refuse'>;
  readonly consumer: RecordConsumer;
  readonly rejects: Pick<RejectFile, 'add'>;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly random: () => number;
  /** Left out: a message is committed when the intake has taken it. */
  readonly custody?: Custody;
}

export const KAFKA_STATES = ['connecting', 'reading', 'waiting'] as const;

/** How the reading goes. */
export interface KafkaStatus {
  /** `waiting`: for the next attempt after a failure. */
  readonly state: (typeof KAFKA_STATES)[number];
  /** Why the last attempt failed; `null` while it reads. */
  readonly problem: string | null;
  /** Topics of the configuration that do not exist. */
  readonly missingTopics: readonly string[];
  /** Connections that failed or ended, since the start. */
  readonly failureCount: number;
  /** Messages that were gone from the topics before they were read, since the start. */
  readonly expiredCount: number;
  /** By topic. */
  readonly topics: ReadonlyMap<string, TopicCounts>;
}

/** Messages of a topic, since the start. */
export interface TopicCounts {
  /** Their records are durable. */
  readonly acceptedCount: number;
  /** They are in the file of rejects, or lines of theirs are. */
  readonly rejectedCount: number;
}

/** What the messages of a topic hold. */
type MessageKind = { readonly signal: Signal; readonly encoding: OtlpEncoding } | 'jsonl';

type BytesConsumer = Consumer<Buffer, Buffer, Buffer, Buffer>;
/** What one reading works with: `admin` asks about topics, on connections of its own. */
interface Clients {
  readonly admin: Admin;
  readonly consumer: BytesConsumer;
  readonly committer: BytesConsumer;
}
type BytesMessage = Message<Buffer, Buffer, Buffer, Buffer>;

/** A broker that is back is found within about ten seconds. */
const RETRY = { baseMs: 500, maxMs: 10_000, maxRetryAfterMs: 10_000 };
/** What one answer of a broker may hold, in bytes; one message is always read, however large. At most two are held for each broker. */
const FETCH_BYTES = 4 * 2 ** 20;
/** What it may hold of one partition, in bytes: a message as large as topics take by default. */
const PARTITION_BYTES = 1.25 * 2 ** 20;
/** How long a broker waits for the first message before it answers that there is none, in milliseconds. */
const FETCH_WAIT_MS = 1_000;
/** A member that was not heard of for so long loses its partitions, in milliseconds; its heart beats on while the record log makes it wait. */
const SESSION_MS = 10_000;
const HEARTBEAT_MS = 3_000;
/** How often it is looked whether a topic has come to be, or has more partitions, in milliseconds. */
const TOPICS_MS = 10_000;
/** How long leaving the group may take, in milliseconds. */
const LEAVE_MS = 5_000;
/** Most messages that are made durable together, and from how many bytes on there is no further one: below what the smallest intake takes at a time. */
const MAX_BATCH = 64;
const BATCH_BYTES = 2 * 2 ** 20;
/** For a partition of which a group has committed nothing. */
const NOT_COMMITTED = -1n;
/** How much is kept of a message that is no telemetry, in bytes. */
const KEPT_BYTES = 3 * 1024;

/**
 * Reads topics of Kafka: a message goes through the same intake as a request, and its offset is committed when its records are
 * durable. What a crash lets come twice is written once. While the intake has no room nothing more is fetched; what is no
 * telemetry is kept among the rejects and passed over. A broker that is away is asked again until it is back.
 */
export class KafkaSource implements Component {
  readonly name = 'kafka-source';
  private readonly stopping = new AbortController();
  private readonly kinds: ReadonlyMap<string, MessageKind>;
  private readonly counts = new Map<string, { acceptedCount: number; rejectedCount: number }>();
  private readonly retries: RetryPolicy;
  private state: KafkaStatus['state'] = 'connecting';
  private problem: string | null = null;
  private missingTopics: readonly string[] = [];
  private failureCount = 0;
  private expiredCount = 0;
  /** Whether a connection has committed where it begins. */
  private hasBegun = false;
  /** The one that reads; `undefined` while there is none. */
  private consumer: BytesConsumer | undefined;
  private running: Promise<void> = Promise.resolve();
  private readonly custody: Omit<Custody, 'writer'>;

  constructor(
    private readonly settings: KafkaSourceSettings,
    private readonly deps: KafkaSourceDeps,
  ) {
    this.kinds = kindsOf(settings);
    for (const topic of this.kinds.keys()) this.counts.set(topic, { acceptedCount: 0, rejectedCount: 0 });
    this.retries = new RetryPolicy(RETRY, deps.random);
    this.custody = deps.custody ?? COMMITTED_WHEN_TAKEN;
    addZstd();
  }

  get status(): KafkaStatus {
    const { state, problem, missingTopics, failureCount, expiredCount, counts: topics } = this;
    return { state, problem, missingTopics, failureCount, expiredCount, topics };
  }

  /** Always ready: what a broker that is away holds back waits there, and the bridge takes everything else. */
  health(): HealthState {
    const { state, problem, missingTopics, failureCount } = this;
    return { ready: true, details: { state, problem, missingTopics: missingTopics.join(','), failureCount } };
  }

  /** Begins to read; does not wait for the broker. */
  async start(): Promise<void> {
    this.running = this.run(this.stopping.signal);
  }

  /** Messages that are being written are committed, others stay where they are. */
  async shutdown(deadline: AbortSignal): Promise<void> {
    this.stopping.abort();
    await Promise.race([this.running, whenAborted(deadline)]);
  }

  /**
   * Messages of the partitions that the bridge has which are not committed, by topic; nothing while there is no connection.
   * @throws what the client throws
   */
  async lag(): Promise<ReadonlyMap<string, number>> {
    const { consumer } = this;
    const topics = consumer?.assignments ?? [];
    if (consumer === undefined || topics.length === 0) return new Map();
    const named = namedPartitions(topics);
    const [ends, committed] = await Promise.all([
      consumer.listOffsets(named),
      consumer.listCommittedOffsets({ topics }),
    ]);
    const lags = new Map<string, number>();
    for (const { topic, partition } of partitionsOf(topics)) {
      const end = ends.get(topic)?.[partition];
      const done = committed.get(topic)?.[partition];
      // In a partition of which nothing is committed the reading has not begun.
      if (end === undefined || done === undefined || done === NOT_COMMITTED) continue;
      lags.set(topic, (lags.get(topic) ?? 0) + Math.max(0, Number(end - done)));
    }
    return lags;
  }

  private async run(stop: AbortSignal): Promise<void> {
    const { clock, logger } = this.deps;
    for (let failedAttempts = 0; !stop.aborted; ) {
      this.state = 'connecting';
      try {
        await this.readTopics(stop, () => {
          failedAttempts = 0;
          this.problem = null;
          this.state = 'reading';
        });
      } catch (error) {
        if (stop.aborted) return;
        failedAttempts += 1;
        this.failureCount += 1;
        this.state = 'waiting';
        const problem = problemOf(error);
        if (problem !== this.problem) logger.warn({ problem }, 'failed to read from Kafka; retrying');
        this.problem = problem;
        await pause(clock, this.retries.delayMs(failedAttempts, null), stop);
      }
    }
  }

  /**
   * Reads until the program stops, or there is a topic or a partition that was not there before.
   * @param onReading is called when the group has been joined
   * @throws what the client throws
   */
  private async readTopics(stop: AbortSignal, onReading: () => void): Promise<void> {
    const { clock, logger } = this.deps;
    const connection = await connectionOptions(this.settings, { clock, signal: stop });
    // What is tried again is the whole.
    const admin = new Admin({ ...connection, retries: 0 });
    const partitionCounts = await this.findTopics(admin).catch(async (error: unknown) => {
      await closed(admin);
      throw error;
    });
    const topics = [...partitionCounts.keys()];
    const ended = new AbortController();
    const signal = AbortSignal.any([stop, ended.signal]);
    const look = async () => {
      if (!isDeepStrictEqual(await this.findTopics(admin), partitionCounts)) ended.abort();
    };
    // That the broker is away, who reads finds out.
    const looking = new FixedDelayTask(TOPICS_MS, clock, look, () => {});
    const { groupId } = this.settings;
    const consumer: BytesConsumer = new Consumer({
      ...connection,
      groupId,
      protocols: [{ name: 'range', version: 1 }],
      partitionAssigner: rangeAssignor,
      sessionTimeout: SESSION_MS,
      rebalanceTimeout: SESSION_MS,
      heartbeatInterval: HEARTBEAT_MS,
    });
    // Tries nothing again: the client would join the group for it, and commit in the name of a generation that knows nothing of it.
    const committer: BytesConsumer = new Consumer({ ...connection, groupId, retries: 0 });
    // The group could not be joined again.
    const failed = new AbortController();
    consumer.on('error', (error: Error) => failed.abort(error));
    // The client names the next generation before it has the partitions of that: only here they belong together.
    let joined: ConsumerGroupJoinPayload | undefined;
    consumer.on('consumer:group:join', (payload) => {
      joined = payload;
    });
    // The client sends no other one then: the group would go on without this member, which would read on all the same.
    consumer.on('consumer:heartbeat:error', ({ error }) => failed.abort(error));
    try {
      looking.start();
      consumer.topics.trackAll(...topics);
      await consumer.joinGroup({});
      this.consumer = consumer;
      onReading();
      logger.info({ topics: topics.join(','), groupId }, 'reading from Kafka');
      const until = AbortSignal.any([signal, failed.signal]);
      while (!until.aborted && joined !== undefined)
        await this.readGeneration({ admin, consumer, committer }, joined, topics, until);
      if (failed.signal.aborted && !signal.aborted) throw failed.signal.reason;
    } finally {
      void looking.stop();
      void closed(admin);
      this.consumer = undefined;
      await this.custody.end(stop.aborted);
      const left = new AbortController();
      committer.close(true, () => consumer.close(true, () => left.abort()));
      await pause(clock, LEAVE_MS, left.signal);
    }
  }

  /** Reads what the member has until that changes. @throws what the client throws */
  private async readGeneration(
    { admin, consumer, committer }: Clients,
    { generationId = 0, memberId, assignments = [] }: ConsumerGroupJoinPayload,
    topics: readonly string[],
    signal: AbortSignal,
  ): Promise<void> {
    const over = new AbortController();
    const until = AbortSignal.any([signal, over.signal]);
    const onJoin = () => over.abort();
    consumer.once('consumer:group:join', onJoin);
    try {
      const partitions = new Set(assignments.flatMap((one) => one.partitions));
      // Not by the consumer's connection: where the group already makes the next generation, the broker answers nothing else there before it has.
      const partitionCounts = await partitionCountsOf(admin, topics);
      await this.custody.begin({ generation: generationId, partitions, partitionCounts }, until);
      if (until.aborted) return;
      const commit = async (offsets: readonly PartitionOffset[]) => {
        Object.assign(committer, { generationId, memberId });
        await committer.commit({ offsets: [...offsets] }).catch((error: unknown) => {
          // What was not committed is read again, by whoever has it then.
          if (!isOfAnotherGeneration(error)) throw error;
        });
      };
      await this.skipExpired(consumer, commit);
      const { logsTopics } = this.settings;
      const stream = await consumer.consume({
        // Log records first: a run that is over by its spans has all of them, also where much waits to be read.
        topics: [...topics].sort((a, b) => Number(logsTopics.includes(b)) - Number(logsTopics.includes(a))),
        mode: 'committed',
        // Where the group has begun once, what has no offset yet is new.
        fallbackMode: this.hasBegun ? 'earliest' : this.settings.initialOffset,
        autocommit: false,
        maxBytes: FETCH_BYTES,
        maxBytesPerPartition: PARTITION_BYTES,
        maxWaitTime: FETCH_WAIT_MS,
        // The next answer is asked for when the last one has been taken from the stream.
        highWaterMark: 1,
      });
      // A broker fills an answer in the order of the request: another partition is the first one each time.
      stream.on('fetch', () => {
        for (const { partitions } of consumer.assignments ?? []) partitions.push(...partitions.splice(0, 1));
      });
      // A rebalance that comes meanwhile lets it fail, and is followed by the next attempt.
      stream.once('offsets', () => void this.begin(consumer, stream.offsetsToFetch, commit).catch(() => undefined));
      await this.readStream(stream, commit, until);
    } catch (error) {
      if (!until.aborted) throw error;
    } finally {
      consumer.off('consumer:group:join', onJoin);
    }
  }

  private async readStream(
    stream: MessagesStream<Buffer, Buffer, Buffer, Buffer>,
    commit: (offsets: readonly PartitionOffset[]) => Promise<void>,
    until: AbortSignal,
  ): Promise<void> {
    const end = () => stream.destroy();
    until.addEventListener('abort', end);
    if (until.aborted) end();
    let batch: BytesMessage[] = [];
    let batchBytes = 0;
    try {
      for await (const message of stream) {
        batch.push(message);
        batchBytes += message.value?.length ?? 0;
        if (stream.readableLength > 0 && batch.length < MAX_BATCH && batchBytes < BATCH_BYTES) continue;
        await this.takeAll(batch, until);
        await this.custody.taken(endsOf(batch), commit, until);
        batch = [];
        batchBytes = 0;
        if (until.aborted) return;
      }
    } finally {
      until.removeEventListener('abort', end);
      stream.destroy();
    }
  }

  /**
   * Commits where reading begins, in partitions of which the group has committed nothing: what comes to their ends while nobody
   * reads is not passed over by the next one that begins there.
   * @param starts by topic and partition, with a colon between them
   */
  private async begin(
    consumer: BytesConsumer,
    starts: ReadonlyMap<string, bigint>,
    commit: (offsets: readonly PartitionOffset[]) => Promise<void>,
  ): Promise<void> {
    const topics = consumer.assignments ?? [];
    const committed = topics.length === 0 ? new Map() : await consumer.listCommittedOffsets({ topics });
    const offsets = partitionsOf(topics).flatMap(({ topic, partition }) => {
      const offset = starts.get(`${topic}:${partition}`);
      if (offset === undefined || committed.get(topic)?.[partition] !== NOT_COMMITTED) return [];
      return [{ topic, partition, offset, leaderEpoch: -1 }];
    });
    if (offsets.length > 0) await commit(offsets);
    this.hasBegun = true;
  }

  /**
   * Commits the earliest offset that there is where the broker has removed what is next (the topic's retention is over), or where a
   * topic was made anew that had more: the broker refuses any other one, each time that it is asked.
   */
  private async skipExpired(
    consumer: BytesConsumer,
    commit: (offsets: readonly PartitionOffset[]) => Promise<void>,
  ): Promise<void> {
    const topics = consumer.assignments ?? [];
    if (topics.length === 0) return;
    const named = namedPartitions(topics);
    const [starts, ends, committed] = await Promise.all([
      consumer.listOffsets({ ...named, timestamp: ListOffsetTimestamps.EARLIEST }),
      consumer.listOffsets(named),
      consumer.listCommittedOffsets({ topics }),
    ]);
    const moved = partitionsOf(topics).flatMap(({ topic, partition }) => {
      const next = committed.get(topic)?.[partition] ?? NOT_COMMITTED;
      const earliest = starts.get(topic)?.[partition];
      const end = ends.get(topic)?.[partition];
      if (next === NOT_COMMITTED || earliest === undefined || end === undefined) return [];
      if (next >= earliest && next <= end) return [];
      const expiredCount = Math.max(0, Number(earliest - next));
      this.expiredCount += expiredCount;
      this.deps.logger.warn(
        { topic, partition, nextOffset: String(next), earliestOffset: String(earliest), expiredCount },
        'the topic no longer has what was to be read next; reading on from the earliest message that there is',
      );
      return [{ topic, partition, offset: earliest, leaderEpoch: -1 }];
    });
    if (moved.length > 0) await commit(moved);
  }

  /** Those of the named topics that there are, with the numbers of their partitions. @throws Error when there are none; what the client throws */
  private async findTopics(admin: Admin): Promise<ReadonlyMap<string, number>> {
    const known = new Set(await admin.listTopics());
    const topics = [...this.kinds.keys()];
    const found = topics.filter((topic) => known.has(topic));
    this.missingTopics = topics.filter((topic) => !known.has(topic));
    if (found.length === 0)
      throw new Error(`the broker has no topic ${topics.join(' and no ')}, or shows it to nobody of this name`);
    return await partitionCountsOf(admin, found);
  }

  /**
   * Takes messages with OTLP in the order of their partition, those of one key after each other: a span that ends an invocation says that no other comes after
   * it, and a short message would be decoded before the longer one in front of it. Lines of JSONL say all by themselves.
   */
  private async takeAll(batch: readonly BytesMessage[], stop: AbortSignal): Promise<void> {
    const isOrdered = ({ topic }: BytesMessage) => this.kinds.get(topic) !== 'jsonl';
    const keyOf = ({ topic, partition, key }: BytesMessage) => `${topic} ${partition} ${key?.toString('latin1') ?? ''}`;
    const partitions = groupBy(batch, (one) => (isOrdered(one) ? keyOf(one) : one));
    const taken = await Promise.allSettled(
      [...partitions.values()].map(async (messages) => {
        for (const message of messages) await this.take(message, stop);
      }),
    );
    for (const one of taken) if (one.status === 'rejected') throw one.reason;
  }

  /** Resolves when the records of a message are durable, or it is kept as no telemetry. @throws the signal's reason */
  private async take(message: BytesMessage, stop: AbortSignal): Promise<void> {
    const { intake, rejects, clock } = this.deps;
    const { topic, partition, offset } = message;
    const recordsHeader = headerOf(message, RECORDS_HEADER);
    const kind = recordsHeader === undefined ? this.kinds.get(topic) : 'jsonl';
    const counts = this.counts.get(topic);
    if (kind === undefined || counts === undefined) throw new Error(`a message of ${topic}, which was not asked for`);
    const bytes = message.value ?? Buffer.alloc(0);
    const deliver = () =>
      kind === 'jsonl'
        ? this.deliverLines(bytes, recordsHeader)
        : this.deliverRequest(
            kind,
            bytes,
            senderOf((name) => headerOf(message, name)),
          );
    let refusal: Refusal | undefined;
    let found: readonly Reject[];
    try {
      const delayMs = (error: unknown) => {
        refusal = intake.refuse(error);
        return refusal.retryAfterMs;
      };
      found = await retry(() => this.withRoom(bytes, deliver), { clock, signal: stop, delayMs });
      counts.acceptedCount += 1;
    } catch (error) {
      stop.throwIfAborted();
      if (refusal === undefined) throw error;
      found = [{ place: '', reason: refusal.message, count: 1, text: keptText(kind, bytes) }];
    }
    if (found.length === 0) return;
    counts.rejectedCount += 1;
    const place = `partition ${partition}, offset ${offset}`;
    const named = found.map((one) => ({ ...one, place: one.place === '' ? place : `${place}, ${one.place}` }));
    await rejects.add(`kafka:${topic}`, named);
  }

  /** @throws as an intake does */
  private async withRoom<Result>(bytes: Buffer, deliver: () => Promise<Result>): Promise<Result> {
    if (bytes.length === 0) throw new RequestError('malformed', 'The message is empty.');
    const { reservation } = this.deps.intake.makeRoom(bytes.length);
    try {
      return await deliver();
    } finally {
      reservation.release();
    }
  }

  /** Makes the records of a request durable. @param sender whose they are */
  private async deliverRequest(
    { signal, encoding }: Exclude<MessageKind, 'jsonl'>,
    bytes: Buffer,
    sender: Sender,
  ): Promise<readonly Reject[]> {
    const body = { byteLength: bytes.length, bytes: () => bytes, release: () => {} };
    await this.unlessMisplaced(
      () => this.deps.intake.take(signal, encoding, body, sender),
      (writer) => writer.consumeBody(signal, encoding, body, sender),
    );
    return [];
  }

  /** Makes the records on lines durable. @returns lines that are none */
  private async deliverLines(bytes: Buffer, header: string | undefined): Promise<readonly Reject[]> {
    const { batches, rejects } = decodeRecords(bytes, header);
    const delivery = { batches, passthrough: [] };
    if (batches.length > 0) {
      await this.unlessMisplaced(
        () => this.deps.consumer.consume(delivery),
        (writer) => writer.consume(delivery),
      );
    }
    return rejects;
  }

  private async unlessMisplaced(
    take: () => Promise<unknown>,
    writeAnew: (writer: Custody['writer']) => Promise<unknown>,
  ): Promise<void> {
    try {
      await take();
    } catch (error) {
      const writer = this.deps.custody?.writer;
      if (!(error instanceof MisplacedError) || writer === undefined) throw error;
      await writeAnew(writer);
    }
  }
}

/** Node has zstd from 22.15 on, and the client knows no other. */
function addZstd(): void {
  if (compressionsAlgorithms.zstd.available) return;
  const decompressSync: typeof compressionsAlgorithms.zstd.decompressSync = (data) =>
    Buffer.from(decompress(Buffer.isBuffer(data) ? data : data.buffer));
  Object.assign(compressionsAlgorithms.zstd, { decompressSync });
}

function closed(admin: Admin): Promise<void> {
  return admin.close().catch(() => undefined);
}

/** A header of a message; `undefined` where it has none of that name. */
function headerOf({ headers }: BytesMessage, name: string): string | undefined {
  return [...headers].find(([key]) => key.toString() === name)?.[1].toString();
}

/** Whether the broker has refused something because the group has changed: the next heartbeat joins it again. */
function isOfAnotherGeneration(error: unknown): boolean {
  if (error instanceof MultipleErrors) return error.findBy('needsRejoin', true) !== null;
  return error instanceof GenericError && error.findBy('needsRejoin', true) !== null;
}

/** Partitions as the client wants them named. */
function namedPartitions(topics: readonly { readonly topic: string; readonly partitions: number[] }[]) {
  return {
    topics: topics.map(({ topic }) => topic),
    partitions: Object.fromEntries(topics.map(({ topic, partitions }) => [topic, partitions])),
  };
}

function partitionsOf(
  topics: readonly { readonly topic: string; readonly partitions: readonly number[] }[],
): readonly { readonly topic: string; readonly partition: number }[] {
  return topics.flatMap(({ topic, partitions }) => partitions.map((partition) => ({ topic, partition })));
}

/** The offsets behind a batch, by partition. */
function endsOf(batch: readonly BytesMessage[]): readonly PartitionOffset[] {
  const ends = batch.map(
    ({ topic, partition, offset }) =>
      [`${topic} ${partition}`, { topic, partition, offset: offset + 1n, leaderEpoch: -1 }] as const,
  );
  return [...new Map(ends).values()];
}

function kindsOf({
  tracesTopics,
  logsTopics,
  jsonlTopics,
  encoding: name,
}: KafkaSourceSettings): ReadonlyMap<string, MessageKind> {
  const encoding = name === 'otlp_json' ? 'json' : 'protobuf';
  const of = (topics: readonly string[], kind: MessageKind) => topics.map((topic) => [topic, kind] as const);
  return new Map([
    ...of(tracesTopics, { signal: 'traces', encoding }),
    ...of(logsTopics, { signal: 'logs', encoding }),
    ...of(jsonlTopics, 'jsonl'),
  ]);
}

/** The beginning of a message: text as it is, protobuf in base64. */
function keptText(kind: MessageKind, bytes: Buffer): string {
  const isText = kind === 'jsonl' || kind.encoding === 'json';
  return bytes.subarray(0, KEPT_BYTES).toString(isText ? 'utf8' : 'base64');
}
