import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import pg from 'pg';
import { S3ObjectStore } from '../../src/storage/bucket/s3-object-store.js';
import { KafkaServer } from '../tool/kafka-server.js';
import { nativePostgres } from '../tool/native-postgres.js';
import { PostgresServer } from '../tool/postgres-server.js';
import { S3Server } from '../tool/s3-server.js';
import type { CleanUp } from './clean-up.js';
import { CountingSink } from './counting-sink.js';
import { freePorts } from './free-ports.js';
import { SeededRandom } from './seeded-random.js';
import { Victim } from './victim.js';

/** One of several processes. */
export interface StagedProcess {
  readonly dataFolder: string;
  readonly httpPort: number;
  readonly webPort: number;
  /** Another one after the process was started with other arguments. */
  victim: Victim;
}

const BUCKET = 'bridge';
const PROCESS_COUNT = 3;
const GROUP = 'run-bridge';
const TOPICS = ['otlp_spans', 'otlp_logs'];
/** More than processes, so that each has some, and one more or less changes who has which. */
const PARTITIONS = 6;
/** The configuration file that says where the journal is. */
const CONFIGURATION = 'run-bridge.yml';

/** Three processes on one real Kafka, one real database and one real bucket, with a destination that they export to. */
export class ClusterStage {
  /** Starts everything. @param seed of what the destination refuses */
  static async start(seed: number, cleanUp: CleanUp): Promise<ClusterStage> {
    const postgres = await PostgresServer.start(nativePostgres());
    cleanUp.add(() => postgres.stop());
    const [s3Port = 0, ...ports] = await freePorts(1 + 2 * PROCESS_COUNT, 24_000);
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
    const stage = new ClusterStage(folder, ports, { postgres, s3, kafka, sink, client, store });
    for (const one of stage.processes) cleanUp.add(() => one.victim.end('SIGKILL'));
    await stage.spawn();
    return stage;
  }

  readonly processes: readonly StagedProcess[];

  private constructor(
    readonly folder: string,
    ports: readonly number[],
    readonly peers: {
      readonly postgres: PostgresServer;
      readonly s3: S3Server;
      readonly kafka: KafkaServer;
      readonly sink: CountingSink;
      readonly client: pg.Client;
      readonly store: S3ObjectStore;
    },
  ) {
    this.processes = Array.from({ length: PROCESS_COUNT }, (_, index) => {
      const [httpPort = 0, webPort = 0] = ports.slice(2 * index);
      const dataFolder = join(folder, `p${index}`);
      mkdirSync(dataFolder);
      const place = { dataFolder, httpPort, webPort };
      return { ...place, victim: new Victim(this.commandOf(place, [])) };
    });
  }

  /** Ends all processes in order, and starts them with further arguments. */
  async restartWith(args: readonly string[]): Promise<void> {
    for (const one of this.processes) {
      await one.victim.end('SIGTERM');
      one.victim = new Victim(this.commandOf(one, args));
    }
    await this.spawn();
  }

  /** What commands take to share what the processes do. */
  get sharing(): { readonly args: readonly string[]; readonly env: Readonly<Record<string, string>> } {
    const { postgres, s3 } = this.peers;
    return {
      args: [
        ...['--artifacts', `s3://${BUCKET}`, '--artifacts-endpoint', s3.endpoint],
        ...['--artifacts-region', S3Server.region, '--processes', 'several'],
        ...['--config', join(this.folder, CONFIGURATION)],
      ],
      env: {
        DATABASE_URL: postgres.url(),
        RUN_BRIDGE_WEBHOOK_KEY: Buffer.alloc(32, 1).toString('base64'),
        AWS_ACCESS_KEY_ID: S3Server.accessKeyId,
        AWS_SECRET_ACCESS_KEY: S3Server.secretAccessKey,
      },
    };
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
    for (const { dataFolder } of this.processes) {
      try {
        return readFileSync(join(dataFolder, 'admin-token'), 'utf8').trim();
      } catch {}
    }
    throw new Error('no process has made a token');
  }

  private async spawn(): Promise<void> {
    for (const { victim } of this.processes) victim.spawn();
    for (const { victim } of this.processes) await victim.ready();
  }

  private commandOf({ dataFolder, httpPort, webPort }: Omit<StagedProcess, 'victim'>, more: readonly string[]) {
    const { args, env } = this.sharing;
    const addresses = ['--http', `127.0.0.1:${httpPort}`, '--web', `127.0.0.1:${webPort}`, '--grpc', 'off'];
    const log = ['--log-format', 'json', '--log-level', more.length === 0 ? 'warn' : 'info'];
    const OTEL_EXPORTER_OTLP_ENDPOINT = `http://127.0.0.1:${this.peers.sink.port}`;
    return {
      name: `process on ${httpPort}`,
      command: process.execPath,
      args: ['dist/main.js', 'serve', ...addresses, '--data-dir', dataFolder, ...args, ...log, ...more],
      env: { HOME: dataFolder, OTEL_EXPORTER_OTLP_ENDPOINT, ...env },
      port: httpPort,
    };
  }
}
