import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import pg from 'pg';
import type { Configuration } from '../../src/config/configuration.js';
import { freePorts } from '../crash/free-ports.js';
import { BridgeProcess } from './bridge-process.js';
import { KafkaServer } from './kafka-server.js';
import { nativePostgres } from './native-postgres.js';
import { PostgresServer } from './postgres-server.js';
import { S3Server } from './s3-server.js';

const BUCKET = 'bridge';
const PARTITIONS = 6;
const CONFIGURATION = 'run-bridge.yml';

/** Several processes of the built program, with a Kafka, a PostgreSQL and an S3 server of their own. */
export class BridgeCluster {
  /**
   * @param roles of the processes, by their index
   * @param args of `serve`, for each
   * @param settings what their configuration file has beside the journal
   */
  static async start(
    roles: readonly Configuration['role'][],
    args: readonly string[],
    settings: readonly string[] = [],
  ): Promise<BridgeCluster> {
    const [s3Port = 0] = await freePorts(1, 24_000);
    const postgres = await PostgresServer.start(nativePostgres());
    const s3 = await S3Server.start(s3Port, [BUCKET]).catch(async (error: unknown) => {
      await postgres.stop();
      throw error;
    });
    const kafka = await KafkaServer.start().catch(async (error: unknown) => {
      await s3.stop();
      await postgres.stop();
      throw error;
    });
    await kafka.createTopics(['otlp_spans', 'otlp_logs'], PARTITIONS);
    const folder = mkdtempSync(join(tmpdir(), 'run-bridge-cluster-'));
    const journal = ['journal:', '  kafka:', `    brokers: ${kafka.broker}`];
    writeFileSync(join(folder, CONFIGURATION), `${[...journal, ...settings].join('\n')}\n`);
    const cluster = new BridgeCluster(postgres, s3, kafka, folder, roles, args);
    for (const index of roles.keys()) {
      mkdirSync(join(folder, `p${index}`));
      await cluster.restart(index);
    }
    return cluster;
  }

  readonly bridges: BridgeProcess[] = [];

  private constructor(
    private readonly postgres: PostgresServer,
    private readonly s3: S3Server,
    readonly kafka: KafkaServer,
    private readonly folder: string,
    private readonly roles: readonly Configuration['role'][],
    private readonly args: readonly string[],
  ) {}

  /** One of them. @throws Error where there is none */
  bridge(index: number): BridgeProcess {
    const found = this.bridges[index];
    if (found === undefined) throw new Error(`there is no process ${index}`);
    return found;
  }

  /** A token for everything: whichever process was the first has made it. */
  get token(): string {
    const path = this.bridges.map(({ dataFolder }) => join(dataFolder, 'admin-token')).find((each) => existsSync(each));
    if (path === undefined) throw new Error('no process has made a token');
    return readFileSync(path, 'utf8').trim();
  }

  /** How many partitions of the journal each process has. */
  async partitionCounts(): Promise<readonly number[]> {
    const client = new pg.Client({ connectionString: this.postgres.url() });
    await client.connect();
    try {
      const { rows } = await client.query<{ lease: string }>(
        'select lease.name as lease from journal_partitions as part join leases as lease on lease.holder = part.process_id',
      );
      return this.bridges.map(({ dataFolder }) => {
        const path = join(dataFolder, 'folder-id');
        const folderId = existsSync(path) ? readFileSync(path, 'utf8').trim() : undefined;
        return rows.filter(({ lease }) => lease === `process ${folderId}`).length;
      });
    } finally {
      await client.end();
    }
  }

  /** Starts a process on its data folder; one that runs has to be stopped before. */
  async restart(index: number): Promise<void> {
    const bucket = `s3://${BUCKET}?endpoint=${this.s3.endpoint}&region=${S3Server.region}`;
    const config = ['--config', join(this.folder, CONFIGURATION)];
    this.bridges[index] = await BridgeProcess.start({
      dataFolder: join(this.folder, `p${index}`),
      args: [
        ...['--artifacts', bucket, '--processes', 'several', ...config],
        ...['--role', this.roles[index] ?? 'all', ...this.args],
      ],
      env: {
        DATABASE_URL: this.postgres.url(),
        RUN_BRIDGE_WEBHOOK_KEY: Buffer.alloc(32, 1).toString('base64'),
        AWS_ACCESS_KEY_ID: S3Server.accessKeyId,
        AWS_SECRET_ACCESS_KEY: S3Server.secretAccessKey,
      },
    });
  }

  /** Ends all of it and removes what it wrote. */
  async remove(): Promise<void> {
    for (const bridge of this.bridges) await bridge.stop('SIGKILL');
    await this.kafka.remove();
    await this.s3.stop();
    await this.postgres.stop();
    rmSync(this.folder, { recursive: true, force: true });
  }
}
