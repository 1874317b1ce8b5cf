import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import pg from 'pg';
import { hashOf } from '../../src/api/authenticator.js';
import { FIRST_TOKEN_FILE } from '../../src/api/first-token.js';
import { S3ObjectStore } from '../../src/storage/bucket/s3-bucket.js';
import { KafkaServer } from '../tool/kafka-server.js';
import { nativePostgres } from '../tool/native-postgres.js';
import { PostgresServer } from '../tool/postgres-server.js';
import { S3Server } from '../tool/s3-server.js';
import { StallingProxy } from '../tool/stalling-proxy.js';
import { until } from '../tool/until.js';
import type { CleanUp } from './clean-up.js';
import { CountingSink } from './counting-sink.js';
import { freePorts } from './free-ports.js';
import { SeededRandom } from './seeded-random.js';
import { Victim } from './victim.js';
import { WriteHistory } from './write-history.js';

/** One of several processes. */
export interface StagedProcess {
  /** As the database knows it: the `application_name` of its connections. */
  readonly name: string;
  readonly dataFolder: string;
  readonly httpPort: number;
  readonly webPort: number;
  /** Another one after the process was started with other arguments. */
  victim: Victim;
}

/** What is staged. */
export interface StageOptions {
  /** Of what the destination refuses. */
  readonly seed: number;
  readonly cleanUp: CleanUp;
  /** Processes that only receive, and to which telemetry is sent; default 0: it is sent to those that build runs. */
  readonly receiverCount?: number;
  /** For those that build runs. */
  readonly args?: readonly string[];
}

/** What processes that build runs are, where others receive. */
const BUILDER_ROLE = 'all';
const BUCKET = 'bridge';
const BUILDER_COUNT = 3;
const GROUP = 'run-bridge';
const TOPICS = ['otlp_spans', 'otlp_logs'];
/** More than processes, so that each has some, and one more or less changes who has which. */
const PARTITIONS = 6;
/** The configuration file that says where the journal is. */
const CONFIGURATION = 'run-bridge.yml';

/**
 * Three processes that build runs, and any number of others that receive telemetry, on one real Kafka, one real database and one
 * real bucket, with a destination that they export to. The database and the bucket are behind proxies that can stop passing
 * anything on, and what is written to both is noted.
 */
export class ClusterStage {
  /** Starts everything but the spare process. */
  static async start({ seed, cleanUp, receiverCount = 0, args = [] }: StageOptions): Promise<ClusterStage> {
    // Which of two transactions was committed first, the history of writes asks.
    const settings = ['track_commit_timestamp=on', 'max_connections=150'];
    const postgres = await PostgresServer.start(nativePostgres(), settings);
    cleanUp.add(() => postgres.stop());
    const [s3Port = 0, ...ports] = await freePorts(1 + 2 * (BUILDER_COUNT + 1 + receiverCount), 24_000);
    const s3 = await S3Server.start(s3Port, [BUCKET]);
    cleanUp.add(() => s3.stop());
    const sink = await CountingSink.listen({ delayMs: 5, failureRate: 0.02, random: new SeededRandom(seed) });
    cleanUp.add(() => sink.close());
    const kafka = await KafkaServer.start();
    cleanUp.add(() => kafka.remove());
    await kafka.createTopics(TOPICS, PARTITIONS);
    const folder = mkdtempSync(join(tmpdir(), 'run-bridge-cluster-'));
    cleanUp.add(() => rmSync(folder, { recursive: true, force: true }));
    writeFileSync(join(folder, CONFIGURATION), `journal:\n  kafka:\n    brokers: ${kafka.broker}\n`);
    const client = new pg.Client({ connectionString: postgres.url() });
    await client.connect();
    cleanUp.add(() => client.end());
    const store = new S3ObjectStore({
      ...{ bucket: BUCKET, prefix: '', endpoint: s3.endpoint, region: S3Server.region, isPathStyle: true },
      credentials: { accessKeyId: S3Server.accessKeyId, secretAccessKey: S3Server.secretAccessKey },
    });
    cleanUp.add(() => store.close());
    const history = new WriteHistory(client);
    const database = await StallingProxy.open(postgres.port);
    cleanUp.add(() => database.close());
    const buckets: StallingProxy[] = [];
    for (let index = 0; index <= BUILDER_COUNT; index += 1) {
      const proxy = await StallingProxy.open(s3Port, (chunk) => history.notePut(`p${index}`, chunk));
      cleanUp.add(() => proxy.close());
      buckets.push(proxy);
    }
    const peers = { postgres, s3, kafka, sink, client, store, database, buckets };
    const stage = new ClusterStage(folder, ports, { peers, history, receiverCount, args });
    for (const one of stage.all) cleanUp.add(() => one.victim.end('SIGKILL'));
    await stage.spawn();
    stage.token = await until('the first token', () => stage.findToken());
    const writers = new Map<string, string>();
    for (const one of stage.processes) writers.set(await stage.processIdOf(one), one.name);
    await history.begin(writers);
    return stage;
  }

  /** Those that build runs. */
  readonly processes: readonly StagedProcess[];
  readonly receivers: readonly StagedProcess[];
  /** One more that builds runs, which somebody else starts. */
  readonly spare: StagedProcess;
  readonly peers: {
    readonly postgres: PostgresServer;
    readonly s3: S3Server;
    readonly kafka: KafkaServer;
    readonly sink: CountingSink;
    readonly client: pg.Client;
    readonly store: S3ObjectStore;
    /** In front of the database. */
    readonly database: StallingProxy;
    /** In front of the bucket, one for each process that builds runs; the last one is the spare one's. */
    readonly buckets: readonly StallingProxy[];
  };
  readonly history: WriteHistory;
  private token = '';

  private constructor(
    readonly folder: string,
    ports: readonly number[],
    {
      peers,
      history,
      receiverCount,
      args,
    }: Pick<ClusterStage, 'peers' | 'history'> & { receiverCount: number; args: readonly string[] },
  ) {
    this.peers = peers;
    this.history = history;
    const place = (index: number, name: string) => {
      const [httpPort = 0, webPort = 0] = ports.slice(2 * index);
      return { name, httpPort, webPort, dataFolder: join(folder, name) };
    };
    const builders = this.peers.buckets.map((bucket, index) => {
      const own = place(index, `p${index}`);
      mkdirSync(own.dataFolder);
      return { ...own, victim: new Victim(this.commandOf(own, bucket, ['--log-level', 'warn', ...args])) };
    });
    this.processes = builders.slice(0, BUILDER_COUNT);
    const [spare] = builders.slice(BUILDER_COUNT);
    if (spare === undefined) throw new Error('there is no spare process');
    this.spare = spare;
    this.receivers = Array.from({ length: receiverCount }, (_, index) => {
      const own = place(builders.length + index, `r${index}`);
      return { ...own, victim: new Victim(this.receiverCommandOf(own)) };
    });
  }

  /** Those to which telemetry is sent. */
  get doors(): readonly StagedProcess[] {
    return this.receivers.length > 0 ? this.receivers : this.processes;
  }

  /** The spare one included. */
  get all(): readonly StagedProcess[] {
    return [...this.processes, this.spare, ...this.receivers];
  }

  /** Ends all that build runs in order, and starts them with further arguments. */
  async restartWith(args: readonly string[]): Promise<void> {
    for (const [index, one] of this.processes.entries()) {
      const bucket = this.peers.buckets[index];
      if (bucket === undefined) throw new Error('a process has no way to the bucket');
      await one.victim.end('SIGTERM');
      one.victim = new Victim(this.commandOf(one, bucket, ['--log-level', 'info', ...args]));
    }
    await this.spawn();
  }

  /** What commands take to share what the processes do. */
  get sharing(): { readonly args: readonly string[]; readonly env: Readonly<Record<string, string>> } {
    const { postgres, s3 } = this.peers;
    return this.sharingBy(s3.endpoint, postgres.url());
  }

  /** Traces that somebody looks after, and messages whose records may not be stored. */
  async openCount(): Promise<number> {
    const unreadCount = await this.peers.kafka.lag(GROUP, TOPICS);
    return unreadCount + (await this.count('journal_traces where is_open = 1'));
  }

  /** Rows of a table, with what follows it in a statement. */
  async count(from: string): Promise<number> {
    const { rows } = await this.peers.client.query(`select count(*)::int as count from ${from}`);
    return Number(rows[0]?.count);
  }

  /** Under which id a process is known to the others. */
  async processIdOf({ dataFolder }: StagedProcess): Promise<string> {
    const folderId = readFileSync(join(dataFolder, 'folder-id'), 'utf8').trim();
    const text = 'select holder from leases where name = $1';
    const { rows } = await this.peers.client.query(text, [`process ${folderId}`]);
    return String(rows[0]?.holder);
  }

  /** The token that one of the processes has made. */
  adminToken(): string {
    return this.token;
  }

  /** Each makes one, and removes it where another one was first. */
  private async findToken(): Promise<string | undefined> {
    for (const { dataFolder } of this.processes) {
      const path = join(dataFolder, FIRST_TOKEN_FILE);
      const token = existsSync(path) ? readFileSync(path, 'utf8').trim() : '';
      if ((await this.count(`tokens where hash = '${hashOf(token).toString('hex')}'`)) > 0) return token;
    }
    return undefined;
  }

  private async spawn(): Promise<void> {
    const started = [...this.processes, ...this.receivers];
    for (const { victim } of started) if (!victim.isAlive) victim.spawn();
    for (const { victim } of started) await victim.ready();
  }

  private sharingBy(endpoint: string, databaseUrl: string): ClusterStage['sharing'] {
    return {
      args: [
        ...['--artifacts', `s3://${BUCKET}?endpoint=${endpoint}&region=${S3Server.region}`, '--processes', 'several'],
        ...['--config', join(this.folder, CONFIGURATION)],
      ],
      env: {
        DATABASE_URL: databaseUrl,
        RUN_BRIDGE_WEBHOOK_KEY: Buffer.alloc(32, 1).toString('base64'),
        AWS_ACCESS_KEY_ID: S3Server.accessKeyId,
        AWS_SECRET_ACCESS_KEY: S3Server.secretAccessKey,
      },
    };
  }

  private commandOf(one: Omit<StagedProcess, 'victim'>, bucket: StallingProxy, more: readonly string[]) {
    const { postgres, database, sink } = this.peers;
    const databaseUrl = `${postgres.url('postgres', database.port)}?application_name=${one.name}`;
    const { args, env } = this.sharingBy(`http://127.0.0.1:${bucket.port}`, databaseUrl);
    const OTEL_EXPORTER_OTLP_ENDPOINT = `http://127.0.0.1:${sink.port}`;
    return this.command(one, ['--role', BUILDER_ROLE, '--data-dir', one.dataFolder, ...args, ...more], {
      ...{ HOME: one.dataFolder, OTEL_EXPORTER_OTLP_ENDPOINT },
      ...env,
    });
  }

  private receiverCommandOf(one: Omit<StagedProcess, 'victim'>) {
    const args = ['--role', 'receive', '--config', join(this.folder, CONFIGURATION), '--log-level', 'warn'];
    return this.command(one, args, { HOME: this.folder });
  }

  private command(
    { name, httpPort, webPort }: Omit<StagedProcess, 'victim'>,
    args: readonly string[],
    env: Readonly<Record<string, string>>,
  ) {
    const addresses = ['--http', `127.0.0.1:${httpPort}`, '--web', `127.0.0.1:${webPort}`, '--grpc', 'off'];
    return {
      name: `${name} on ${httpPort}`,
      command: process.execPath,
      args: ['dist/main.js', 'serve', ...addresses, '--log-format', 'json', ...args],
      env,
      port: httpPort,
    };
  }
}
