import { type ChildProcess, spawn } from 'node:child_process';
import { mkdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { S3ObjectStore } from '../src/storage/bucket/s3-bucket.js';
import { freePorts } from '../test/crash/free-ports.js';
import { BridgeProcess } from '../test/tool/bridge-process.js';
import { KafkaServer, type PartitionPosition } from '../test/tool/kafka-server.js';
import { nativePostgres } from '../test/tool/native-postgres.js';
import { PostgresServer } from '../test/tool/postgres-server.js';
import { S3Server } from '../test/tool/s3-server.js';
import { until } from '../test/tool/until.js';
import { cpuTimeMs, familyCpuTimeMs } from './measured-process.js';
import { peerEnvironment, peerProgram, WORK_FOLDER } from './peer-programs.js';
import { PORTS } from './ports.js';

/** What makes a process one that builds runs. */
const BUILDER_ARGS = ['--processes', 'several', '--role', 'build'];
/** What makes it one that only receives. */
const RECEIVER_ARGS = ['--role', 'receive'];
const BUCKET = 'bridge';

/** The two topics of a journal. */
export interface Topics {
  readonly traces: string;
  readonly logs: string;
  readonly partitionCount: number;
}

/** CPU seconds of the programs beside run-bridge, since they were started. */
export interface ServerCpu {
  readonly kafka: number;
  readonly postgres: number;
}

/** Requests to the bucket, in the groups that are paid for alike. */
export interface BucketRequests {
  /** Segments of record logs. */
  readonly segments: number;
  /** All writes, segments among them: an upload in parts is one for each part and two more. */
  readonly puts: number;
  readonly gets: number;
  readonly lists: number;
  readonly deletes: number;
  /** In segments. */
  readonly segmentBytes: number;
}

/** A real Kafka, PostgreSQL and S3 server on this machine, for receivers and builders that are measured. */
export class KafkaSystem {
  static async start(dist: string): Promise<KafkaSystem> {
    const accessLog = join(WORK_FOLDER, 'bucket-requests.log');
    const [port = 0] = await freePorts(1, 24_000);
    const postgres = await PostgresServer.start(nativePostgres());
    const s3 = await S3Server.start(port, [BUCKET], accessLog).catch(async (error: unknown) => {
      await postgres.stop();
      throw error;
    });
    const kafka = await KafkaServer.start(['-Xmx1g']).catch(async (error: unknown) => {
      await s3.stop();
      await postgres.stop();
      throw error;
    });
    return new KafkaSystem(dist, kafka, postgres, s3, accessLog);
  }

  private sink: ChildProcess | undefined;

  private constructor(
    private readonly dist: string,
    private readonly kafka: KafkaServer,
    private readonly postgres: PostgresServer,
    private readonly s3: S3Server,
    private readonly accessLog: string,
  ) {}

  get cpu(): ServerCpu {
    return {
      kafka: cpuTimeMs(this.kafka.pid ?? 0) / 1_000,
      postgres: familyCpuTimeMs(this.postgres.pid ?? 0) / 1_000,
    };
  }

  async createTopics(name: string, partitionCount: number): Promise<Topics> {
    const topics = { traces: `${name}_spans`, logs: `${name}_logs`, partitionCount };
    await this.kafka.createTopics([topics.traces, topics.logs], partitionCount);
    return topics;
  }

  async startReceiver(topics: Topics): Promise<BridgeProcess> {
    const args = [...this.configuration('receiver', topics), ...RECEIVER_ARGS, '--otlp-auth', 'none'];
    const receiver = await BridgeProcess.start({ program: this.program, args, dataFolder: this.folder('receiver') });
    await until('a receiver that writes to Kafka', async () => (await fetch(`${receiver.webUrl}/readyz`)).ok);
    return receiver;
  }

  /** @param name one that no other has @param isExporting whether everything is also sent to an OTLP destination */
  async createDeployment(name: string, topics: Topics, isExporting = false): Promise<Deployment> {
    if (isExporting) this.sink ??= spawn(peerProgram('sink'), ['-addr', SINK, '-no-ids'], { stdio: 'ignore' });
    await this.postgres.tell(`create database ${name}`);
    const client = new pg.Client({ connectionString: this.postgres.url(name) });
    await client.connect();
    const credentials = { accessKeyId: S3Server.accessKeyId, secretAccessKey: S3Server.secretAccessKey };
    const bucket = new S3ObjectStore({
      ...{ bucket: BUCKET, prefix: `${name}/`, endpoint: this.s3.endpoint, region: S3Server.region, credentials },
      isPathStyle: true,
    });
    const args = [
      ...['--artifacts', `s3://${BUCKET}/${name}?endpoint=${this.s3.endpoint}&region=${S3Server.region}`],
      ...[...this.configuration(name, topics), ...BUILDER_ARGS],
    ];
    const env = {
      DATABASE_URL: this.postgres.url(name),
      RUN_BRIDGE_WEBHOOK_KEY: Buffer.alloc(32, 1).toString('base64'),
      AWS_ACCESS_KEY_ID: S3Server.accessKeyId,
      AWS_SECRET_ACCESS_KEY: S3Server.secretAccessKey,
      ...(isExporting && { OTEL_EXPORTER_OTLP_ENDPOINT: `http://${SINK}`, OTEL_EXPORTER_OTLP_COMPRESSION: 'none' }),
    };
    const start = (index: number) =>
      BridgeProcess.start({ program: this.program, args, env, dataFolder: this.folder(`${name}-${index}`) });
    const positions = () => this.kafka.positions(name, [topics.traces, topics.logs]);
    return new Deployment(client, bucket, start, positions);
  }

  /** How long the log of the bucket's requests is. */
  get requestLogBytes(): number {
    return statSync(this.accessLog).size;
  }

  /** What the bucket was asked since its log of requests had a length. */
  requestsSince(logBytes: number): BucketRequests {
    const counts = { segments: 0, puts: 0, gets: 0, lists: 0, deletes: 0, segmentBytes: 0 };
    for (const line of readFileSync(this.accessLog).subarray(logBytes).toString('latin1').split('\n')) {
      // Owner, bucket, time in two words, address, requester, id, then these; status, error and bytes sent stand between.
      const [operation = '', key = '', , , , , size = ''] = line.split(' ').slice(7);
      if (PUTS.has(operation)) counts.puts += 1;
      else if (operation === 's3_GetObject' || operation === 's3_HeadObject') counts.gets += 1;
      else if (operation.startsWith('s3_List')) counts.lists += 1;
      else if (operation.startsWith('s3_Delete')) counts.deletes += 1;
      if (operation !== 's3_PutObject' || !key.includes('/segments/')) continue;
      counts.segments += 1;
      counts.segmentBytes += Number(size);
    }
    return counts;
  }

  async remove(): Promise<void> {
    this.sink?.kill();
    await this.kafka.remove();
    await this.s3.stop();
    await this.postgres.stop();
  }

  private get program(): string {
    return join(this.dist, 'main.js');
  }

  private folder(name: string): string {
    const folder = join(WORK_FOLDER, 'run', name);
    mkdirSync(folder, { recursive: true });
    return folder;
  }

  /** @param group of readers */
  private configuration(group: string, { traces, logs }: Topics): readonly string[] {
    const path = join(WORK_FOLDER, `${group}-${traces}.yml`);
    const keys = [
      `brokers: ${this.kafka.broker}`,
      `group-id: ${group}`,
      `traces-topic: ${traces}`,
      `logs-topic: ${logs}`,
    ];
    writeFileSync(path, ['journal:', '  kafka:', ...keys.map((key) => `    ${key}`), ''].join('\n'));
    return ['--config', path];
  }
}

const SINK = `127.0.0.1:${PORTS.sink}`;
const PUTS = new Set(['s3_PutObject', 's3_UploadPart', 's3_CreateMultipartUpload', 's3_CompleteMultipartUpload']);

/** What is looked at is not to be busy with that. */
async function rest(): Promise<false> {
  await sleep(500);
  return false;
}

/** Builders of one group, with a database and a part of the bucket of their own. */
export class Deployment {
  private builders: (BridgeProcess | undefined)[] = [];
  /** Transactions of this measurement itself. */
  private askedCount = 0;

  constructor(
    private readonly client: pg.Client,
    private readonly bucket: S3ObjectStore,
    private readonly startOne: (index: number) => Promise<BridgeProcess>,
    readonly positions: () => Promise<readonly PartitionPosition[]>,
  ) {}

  /** Starts builders, all at a time. */
  async start(count: number): Promise<readonly BridgeProcess[]> {
    return await Promise.all(Array.from({ length: count }, (_, index) => this.restart(index)));
  }

  async restart(index: number): Promise<BridgeProcess> {
    const builder = await this.startOne(index);
    this.builders[index] = builder;
    return builder;
  }

  /** Resolves when everything is read, committed and in the bucket. */
  async read(timeoutMs: number): Promise<void> {
    const isRead = async () => (await this.positions()).every(({ committed, end }) => committed === end);
    await until('the end of the topics', async () => (await isRead()) || rest(), timeoutMs);
  }

  /** Resolves when no trace is open either. */
  async over(timeoutMs: number): Promise<void> {
    const isOver = async () => (await this.count('journal_traces where is_open = 1')) === 0;
    await until('the end of every run', async () => (await isOver()) || rest(), timeoutMs);
  }

  /** Rows of a table, with what follows it in a statement. */
  async count(from: string): Promise<number> {
    return Number((await this.query(`select count(*)::int as count from ${from}`))[0]?.count);
  }

  /** Bytes of files of runs in the bucket, record logs among them, as the database has them. */
  async storedBytes(): Promise<{ readonly fileBytes: number; readonly logBytes: number }> {
    const [row] = await this.query(
      `select sum(size_bytes) as files, sum(size_bytes) filter (where name = 'telemetry.jsonl') as logs from journal_files`,
    );
    return { fileBytes: Number(row?.files ?? 0), logBytes: Number(row?.logs ?? 0) };
  }

  /** Which partitions of the journal each process has, as the database knows it. */
  async partitionsByProcess(): Promise<ReadonlyMap<string, ReadonlySet<number>>> {
    const byProcess = new Map<string, Set<number>>();
    for (const { process_id, partition_index } of await this.query('select * from journal_partitions')) {
      const partitions = byProcess.get(String(process_id)) ?? new Set<number>();
      byProcess.set(String(process_id), partitions.add(Number(partition_index)));
    }
    return byProcess;
  }

  /** Under which id a builder is known to the others. */
  async processIdOf({ dataFolder }: BridgeProcess): Promise<string> {
    const folderId = readFileSync(join(dataFolder, 'folder-id'), 'utf8').trim();
    const [row] = await this.query(`select holder from leases where name = 'process ${folderId}'`);
    return String(row?.holder);
  }

  /** Transactions of the builders since the database was made, and bytes of the server's write-ahead log. */
  async databaseWork(): Promise<{ readonly transactions: number; readonly walBytes: number }> {
    const [row] = await this.query(
      `select xact_commit as transactions, pg_current_wal_lsn() - '0/0'::pg_lsn as wal
      from pg_stat_database where datname = current_database()`,
    );
    return { transactions: Number(row?.transactions) - this.askedCount, walBytes: Number(row?.wal) };
  }

  /** Lines of the record logs in the bucket, a number for each run. */
  async logLineCounts(): Promise<readonly number[]> {
    const counts: number[] = [];
    for (const key of await this.bucket.list('')) {
      if (!key.endsWith('/telemetry.jsonl')) continue;
      let count = 0;
      for await (const chunk of (await this.bucket.open(key)) ?? []) {
        for (let at = chunk.indexOf(10); at !== -1; at = chunk.indexOf(10, at + 1)) count += 1;
      }
      counts.push(count);
    }
    return counts;
  }

  /** Ends it, and removes what it has on disk. */
  async remove(): Promise<void> {
    for (const builder of this.builders) await builder?.remove();
    await this.client.end();
    await this.bucket.remove(await this.bucket.list(''));
    this.bucket.close();
  }

  private async query(text: string): Promise<readonly Readonly<Record<string, unknown>>[]> {
    this.askedCount += 1;
    return (await this.client.query<Readonly<Record<string, unknown>>>(text)).rows;
  }
}

/** What the load generator says of what it sent (`test/tool/peers/load/cmd/load`). */
export interface Sent {
  readonly spans: number;
  readonly secs: number;
  readonly p99Ms: number;
  readonly bytes: number;
  /** Why it does not count. */
  readonly failures: readonly string[];
}

/** How copies of runs are sent. */
export interface SendOptions {
  /** Rounded up to whole copies. */
  readonly spanCount: number;
  /** Copies that are sent side by side. */
  readonly connections: number;
  /** Default: as fast as it answers. */
  readonly spansPerSecond?: number;
}

/** Sends copies of real runs, each with ids of its own, and waits until all are acknowledged. @param folders with their requests */
export async function send(url: string, folders: readonly string[], options: SendOptions): Promise<Sent> {
  const args = ['-url', `${url}/v1/traces`, '-corpus', folders.join(','), '-count', String(options.spanCount)];
  args.push('-c', String(options.connections), '-rate', String(options.spansPerSecond ?? 0));
  const child = spawn(peerProgram('load'), args, { env: peerEnvironment(), stdio: ['ignore', 'pipe', 'ignore'] });
  let text = '';
  child.stdout.on('data', (chunk: Buffer) => {
    text += chunk.toString();
  });
  await new Promise((resolve) => child.once('close', resolve));
  const said: unknown = JSON.parse(text);
  const numberOf = (name: string) => Number(Reflect.get(Object(said), name));
  const refused = {
    'bodies given up': numberOf('bodies_given_up'),
    'spans rejected': numberOf('partial_success_rejected'),
  };
  return {
    ...{ spans: numberOf('spans_acked'), secs: numberOf('secs') },
    ...{ p99Ms: numberOf('p99_ms'), bytes: numberOf('raw_bytes') },
    failures: Object.entries(refused).flatMap(([what, count]) => (count > 0 ? [`${count} ${what}`] : [])),
  };
}
