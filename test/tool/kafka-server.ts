import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Admin, Consumer, Producer } from '@platformatic/kafka';
import { slices } from '../../src/core/lists.js';
import { freePorts } from '../crash/free-ports.js';
import { canConnect } from './can-connect.js';
import { KafkaFront } from './kafka-front.js';
import { buildPeer, peersFolder } from './peer-process.js';
import { TlsFront } from './tls-front.js';
import { until } from './until.js';

/** A message for a topic. */
export interface KafkaMessage {
  readonly key?: string;
  /** `null`: as what removes a key from a compacted topic has it. */
  readonly value: Uint8Array | null;
  readonly headers?: Readonly<Record<string, string>>;
}

/** How far a group has come in a partition. */
export interface PartitionPosition {
  readonly topic: string;
  readonly partition: number;
  /** The offset of the message that is next for the group; 0 where it has committed nothing. */
  readonly committed: number;
  /** The offset that the next message will have. */
  readonly end: number;
}

/** A real Kafka: one node that is broker and controller, over a folder of its own, on loopback ports. */
export class KafkaServer {
  static readonly user = 'bridge';
  static readonly password = 'bridge-secret';

  /** Brings it where it is not yet, and starts it. @param java options of its Java; by default those that make it start soon */
  static async start(java: readonly string[] = QUICK): Promise<KafkaServer> {
    buildPeer('kafka');
    const folder = mkdtempSync(join(tmpdir(), 'run-bridge-kafka-'));
    const [port = 0, securePort = 0, mutualPort = 0, controllerPort = 0, ...frontPorts] = await freePorts(6, 28_000);
    const kafka = new KafkaServer(folder, java, port, securePort, mutualPort, frontPorts);
    writeFileSync(kafka.file('server.properties'), kafka.properties(controllerPort));
    const user = `[name=${KafkaServer.user},password=${KafkaServer.password}]`;
    const scram = ['SCRAM-SHA-256', 'SCRAM-SHA-512'].flatMap((mechanism) => ['--add-scram', `${mechanism}=${user}`]);
    const format = ['format', '--cluster-id', 'MkU3OEVBNTcwNTJENDM2Qk', '--config', kafka.file('server.properties')];
    execFileSync('java', [...QUICK, ...JARS, 'kafka.tools.StorageTool', ...format, ...scram], { stdio: 'ignore' });
    await kafka.resume();
    return kafka;
  }

  private child: ChildProcess | undefined;

  private constructor(
    private readonly folder: string,
    private readonly java: readonly string[],
    private readonly port: number,
    private readonly securePort: number,
    private readonly mutualPort: number,
    /** Where it says that it can be reached, and where a front reaches it. */
    private readonly frontPorts: readonly number[],
  ) {}

  /** Of its process; `undefined` before the first start. */
  get pid(): number | undefined {
    return this.child?.pid;
  }

  /** `HOST:PORT` without TLS, for everybody. */
  get broker(): string {
    return `127.0.0.1:${this.port}`;
  }

  /** `HOST:PORT` with TLS, by the certificate of `TlsFront`, for who says who he is. */
  get secureBroker(): string {
    return `localhost:${this.securePort}`;
  }

  /** `HOST:PORT` with TLS, for who has a certificate: that of `TlsFront` with its key. */
  get mutualBroker(): string {
    return `localhost:${this.mutualPort}`;
  }

  /** Stands before it, without TLS: for who has `frontBroker` as its broker. */
  openFront(): Promise<KafkaFront> {
    const [port = 0, behindPort = 0] = this.frontPorts;
    return KafkaFront.open(port, behindPort);
  }

  /** `HOST:PORT` of the front, while that is open. */
  get frontBroker(): string {
    return `127.0.0.1:${this.frontPorts[0]}`;
  }

  /** Starts it again on what it has written. */
  async resume(): Promise<void> {
    const args = [...this.java, ...JARS, 'kafka.Kafka', this.file('server.properties')];
    const child = spawn('java', args, { stdio: ['ignore', 'pipe', 'pipe'] });
    this.child = child;
    let output = '';
    for (const stream of [child.stdout, child.stderr]) {
      stream.on('data', (chunk: Buffer) => {
        output += chunk.toString();
      });
    }
    await until('Kafka', () => {
      if (child.exitCode !== null) throw new Error(`Kafka ended with ${child.exitCode}: ${output}`);
      return canConnect(this.port);
    });
  }

  /** Ends it at once; what it has stays. */
  async kill(): Promise<void> {
    const { child } = this;
    if (child === undefined || child.exitCode !== null || child.signalCode !== null) return;
    const ended = new Promise((resolve) => child.once('exit', resolve));
    child.kill('SIGKILL');
    await ended;
  }

  /** It answers nobody until it is killed and resumed. */
  freeze(): void {
    this.child?.kill('SIGSTOP');
  }

  async remove(): Promise<void> {
    await this.kill();
    rmSync(this.folder, { recursive: true, force: true });
  }

  /** @param configs of the topics, for example `max.message.bytes` */
  async createTopics(
    names: readonly string[],
    partitions = 1,
    configs: Readonly<Record<string, string>> = {},
  ): Promise<void> {
    const admin = new Admin(this.client);
    try {
      const named = Object.entries(configs).map(([name, value]) => ({ name, value }));
      await admin.createTopics({ topics: [...names], partitions, replicas: 1, configs: named });
    } finally {
      await admin.close();
    }
  }

  /** Topics have so many more partitions from now on. */
  async addPartitions(names: readonly string[], added: number): Promise<void> {
    const admin = new Admin(this.client);
    try {
      const { topics } = await admin.metadata({ topics: [...names] });
      const assignments = Array.from({ length: added }, () => ({ brokerIds: [1] }));
      await admin.createPartitions({
        topics: names.map((name) => ({
          name,
          count: (topics.get(name)?.partitionsCount ?? 0) + added,
          assignments,
        })),
      });
    } finally {
      await admin.close();
    }
  }

  /** Resolves when the broker has the messages. */
  async send(topic: string, messages: readonly KafkaMessage[]): Promise<void> {
    const producer = new Producer(this.client);
    try {
      for (const slice of slices(messages, SENT_TOGETHER)) {
        const sent = slice.map(({ key, value, headers = {} }) => ({
          topic,
          headers: new Map(Object.entries(headers).map(([name, text]) => [Buffer.from(name), Buffer.from(text)])),
          ...(value !== null && { value: Buffer.from(value) }),
          ...(key !== undefined && { key: Buffer.from(key) }),
        }));
        await producer.send({ messages: sent });
      }
    } finally {
      await producer.close();
    }
  }

  /** The first messages of a topic: their keys and sizes, in the order of each partition. Resolves when there are so many. */
  async firstMessages(
    topic: string,
    count: number,
  ): Promise<readonly { readonly key: string; readonly partition: number; readonly byteCount: number }[]> {
    const consumer = new Consumer({ ...this.client, groupId: `test-${topic}` });
    const messages = [];
    try {
      const stream = await consumer.consume({ topics: [topic], mode: 'earliest', autocommit: false, maxWaitTime: 100 });
      for await (const { key, value, partition } of stream) {
        messages.push({ key: key?.toString() ?? '', partition, byteCount: value?.length ?? 0 });
        if (messages.length === count) break;
      }
    } finally {
      await consumer.close(true);
    }
    return messages;
  }

  /** Removes all that topics have, as their retention does. */
  async expire(topics: readonly string[]): Promise<void> {
    const admin = new Admin(this.client);
    try {
      const metadata = await admin.metadata({ topics: [...topics] });
      await admin.deleteRecords({
        topics: topics.map((name) => ({
          name,
          partitions: [...Array(metadata.topics.get(name)?.partitionsCount ?? 0).keys()].map((partition) => ({
            partition,
            // Up to the end.
            offset: -1n,
          })),
        })),
      });
    } finally {
      await admin.close();
    }
  }

  /** What a group has committed of a topic's first partition: the offset of the message that is next; -1 for nothing. */
  async committed(groupId: string, topic: string): Promise<number> {
    const admin = new Admin(this.client);
    try {
      const groups = await admin.listConsumerGroupOffsets({
        groups: [{ groupId, topics: [{ name: topic, partitionIndexes: [0] }] }],
      });
      return Number(groups[0]?.topics[0]?.partitions[0]?.committedOffset ?? -1);
    } finally {
      await admin.close();
    }
  }

  /** How many members a group has. */
  async memberCount(groupId: string): Promise<number> {
    const admin = new Admin(this.client);
    try {
      const groups = await admin.describeGroups({ groups: [groupId] });
      return groups.get(groupId)?.members.size ?? 0;
    } finally {
      await admin.close();
    }
  }

  /** Messages of topics that a group has not committed. */
  async lag(groupId: string, topics: readonly string[]): Promise<number> {
    const positions = await this.positions(groupId, topics);
    return positions.reduce((sum, { committed, end }) => sum + end - committed, 0);
  }

  /** Where a group is in each partition of topics. */
  async positions(groupId: string, topics: readonly string[]): Promise<readonly PartitionPosition[]> {
    const admin = new Admin(this.client);
    try {
      const metadata = await admin.metadata({ topics: [...topics] });
      const indexes = (name: string) => [...Array(metadata.topics.get(name)?.partitionsCount ?? 0).keys()];
      const [group] = await admin.listConsumerGroupOffsets({
        groups: [{ groupId, topics: topics.map((name) => ({ name, partitionIndexes: indexes(name) })) }],
      });
      const ends = await admin.listOffsets({
        topics: topics.map((name) => ({
          name,
          partitions: indexes(name).map((partitionIndex) => ({ partitionIndex, timestamp: -1n })),
        })),
      });
      return ends.flatMap(({ name, partitions }) => {
        const offsets = group?.topics.find((one) => one.name === name)?.partitions ?? [];
        return partitions.map(({ partitionIndex: partition, offset }) => {
          const at = offsets.find((one) => one.partitionIndex === partition)?.committedOffset ?? -1n;
          return { topic: name, partition, committed: Math.max(0, Number(at)), end: Number(offset) };
        });
      });
    } finally {
      await admin.close();
    }
  }

  private get client(): { readonly clientId: string; readonly bootstrapBrokers: string[] } {
    return { clientId: 'test', bootstrapBrokers: [this.broker] };
  }

  private file(name: string): string {
    return join(this.folder, name);
  }

  private properties(controllerPort: number): string {
    const key = readFileSync(TlsFront.key, 'utf8');
    writeFileSync(this.file('keystore.pem'), `${key}\n${readFileSync(TlsFront.certificate, 'utf8')}`);
    const module = 'org.apache.kafka.common.security';
    const secure = 'listener.name.secure';
    return [
      'process.roles=broker,controller',
      'node.id=1',
      `controller.quorum.voters=1@127.0.0.1:${controllerPort}`,
      'controller.listener.names=CONTROLLER',
      `listeners=OPEN://127.0.0.1:${this.port},SECURE://127.0.0.1:${this.securePort},MUTUAL://127.0.0.1:${this.mutualPort},FRONT://127.0.0.1:${this.frontPorts[1]},CONTROLLER://127.0.0.1:${controllerPort}`,
      `advertised.listeners=OPEN://127.0.0.1:${this.port},SECURE://localhost:${this.securePort},MUTUAL://localhost:${this.mutualPort},FRONT://${this.frontBroker}`,
      'listener.security.protocol.map=OPEN:PLAINTEXT,SECURE:SASL_SSL,MUTUAL:SSL,FRONT:PLAINTEXT,CONTROLLER:PLAINTEXT',
      'inter.broker.listener.name=OPEN',
      `log.dirs=${this.file('data')}`,
      // One node has the groups' offsets, and no group waits for further members.
      'offsets.topic.replication.factor=1',
      'offsets.topic.num.partitions=1',
      'transaction.state.log.replication.factor=1',
      'transaction.state.log.min.isr=1',
      'group.initial.rebalance.delay.ms=0',
      'ssl.keystore.type=PEM',
      `ssl.keystore.location=${this.file('keystore.pem')}`,
      'ssl.truststore.type=PEM',
      `ssl.truststore.location=${TlsFront.certificate}`,
      'listener.name.mutual.ssl.client.auth=required',
      `${secure}.sasl.enabled.mechanisms=PLAIN,SCRAM-SHA-256,SCRAM-SHA-512,OAUTHBEARER`,
      `${secure}.plain.sasl.jaas.config=${module}.plain.PlainLoginModule required user_${KafkaServer.user}="${KafkaServer.password}";`,
      `${secure}.scram-sha-256.sasl.jaas.config=${module}.scram.ScramLoginModule required;`,
      `${secure}.scram-sha-512.sasl.jaas.config=${module}.scram.ScramLoginModule required;`,
      // Takes tokens that nobody has signed.
      `${secure}.oauthbearer.sasl.jaas.config=${module}.oauthbearer.OAuthBearerLoginModule required unsecuredLoginStringClaim_sub="kafka";`,
      '',
    ].join('\n');
  }
}

/** Messages of one request: the samples' lines stay below the megabyte that a broker takes. */
const SENT_TOGETHER = 50;
/** A small heap, and what makes a start quick. */
const QUICK = ['-Xmx256m', '-XX:+UseSerialGC', '-XX:TieredStopAtLevel=1'];
const JARS = ['-cp', join(peersFolder(), 'kafka', '*')];
