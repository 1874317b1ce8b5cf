import { afterAll, afterEach, beforeAll, expect, it } from 'vitest';
import { type Assignment, KafkaSource } from '../../src/cluster/kafka/kafka-source.js';
import { systemClock } from '../../src/core/clock.js';
import { RecordingLogger } from '../fake/recording-logger.js';
import { SYNC_GROUP } from '../tool/kafka-front.js';
import { KafkaServer } from '../tool/kafka-server.js';
import { until } from '../tool/until.js';

const TOPICS = { tracesTopics: ['spans'], logsTopics: ['logs'], jsonlTopics: [] };
let kafka: KafkaServer;
const ended: (() => Promise<unknown>)[] = [];

beforeAll(async () => {
  kafka = await KafkaServer.start();
  await kafka.createTopics(['spans', 'logs'], 4);
});
afterEach(async () => {
  for (const end of ended.splice(0).reverse()) await end();
});
afterAll(() => kafka.remove());

/** A member of the group that notes what it begins with. There is nothing to read. */
class Member {
  /** @param first what it waits for when it has begun for the first time */
  static async join(broker = kafka.broker, first = Promise.resolve()): Promise<Member> {
    const member = new Member(broker, first);
    await member.source.start();
    ended.push(() => member.source.shutdown(AbortSignal.timeout(20_000)));
    return member;
  }

  readonly begun: Assignment[] = [];
  private readonly source: KafkaSource;

  private constructor(broker: string, first: Promise<void>) {
    const connection = { brokers: [broker], tls: null, sasl: null };
    const nothing = () => {
      throw new Error('there is nothing to read');
    };
    this.source = new KafkaSource(
      { ...connection, ...TOPICS, groupId: 'builders', encoding: 'otlp_proto', initialOffset: 'earliest' },
      {
        intake: { makeRoom: nothing, take: nothing, refuse: nothing },
        consumer: { consume: nothing },
        rejects: { add: nothing },
        clock: systemClock,
        logger: new RecordingLogger(),
        random: () => 0.5,
        custody: {
          writer: { consume: nothing, consumeBody: nothing },
          begin: async (assignment) => {
            this.begun.push(assignment);
            await first;
          },
          taken: nothing,
          end: async () => {},
        },
      },
    );
  }

  /** Of the group as the client knows it, whether or not it has its partitions yet. */
  get generation(): unknown {
    return Reflect.get(Reflect.get(this.source, 'consumer') ?? {}, 'generationId');
  }
}

it('begins with the partitions of the generation that it names, also while the group makes the next one', async () => {
  const front = await kafka.openFront();
  ended.push(() => front.close());
  const leader = await Member.join(kafka.frontBroker);
  await until('the first generation', () => leader.begun.length === 1);
  let goOn = () => {};
  const slow = await Member.join(kafka.broker, new Promise<void>((resolve) => (goOn = resolve)));
  await until('the second generation', () => slow.begun.length === 1);
  const third = await Member.join();
  await until('the third generation', () => third.begun.length === 1);
  const generation = third.begun[0]?.generation;
  await until('that all have it', () => slow.generation === generation);
  front.hold(SYNC_GROUP);
  await Member.join();
  await until('the fourth one, without its partitions', () => slow.generation !== generation);
  goOn();
  await until('what the slow one begins with', () => slow.begun.length === 2);
  expect(slow.begun[1]?.generation).toBe(generation);
  front.release();
  await until('the fourth generation', () => slow.begun.length === 3);
  expect(slow.begun[2]?.generation).toBeGreaterThan(generation ?? 0);
});
