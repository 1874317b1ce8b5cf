import { existsSync, mkdirSync, mkdtempSync, readFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import { z } from 'zod';
import { auditDeliveries } from '../crash/audit-deliveries.js';
import { CleanUp } from '../crash/clean-up.js';
import { FlakyReceiver } from '../crash/flaky-receiver.js';
import { freePorts } from '../crash/free-ports.js';
import { SeededRandom } from '../crash/seeded-random.js';
import { ToldJobs } from '../crash/told-jobs.js';
import { BridgeProcess } from '../tool/bridge-process.js';
import { nativePostgres } from '../tool/native-postgres.js';
import { PostgresServer } from '../tool/postgres-server.js';
import { S3Server } from '../tool/s3-server.js';
import { subscribe } from '../tool/subscribe.js';
import { until } from '../tool/until.js';

const PROCESS_COUNT = 3;
const JOB_COUNT = 8;
const RUN_COUNT = Number(process.env.DISPATCHER_RUNS ?? 160);
const KILL_COUNT = Number(process.env.DISPATCHER_KILLS ?? 4);
const RETRIES = Array(20).fill('200ms').join(',');
const BUCKET = 'bridge';

const cleanUp = new CleanUp();
afterEach(() => cleanUp.run());

const readySchema = z.object({
  checks: z.array(
    z.looseObject({ name: z.string(), details: z.looseObject({ delivered: z.number().optional() }).optional() }),
  ),
});

describe('several processes that deliver webhooks', () => {
  it('make each attempt once, in order per job, and lose no event, whichever of them are killed', {
    timeout: 600_000,
  }, async () => {
    const postgres = await PostgresServer.start(nativePostgres());
    cleanUp.add(() => postgres.stop());
    const [s3Port = 0] = await freePorts(1, 24_000);
    const s3 = await S3Server.start(s3Port, [BUCKET]);
    cleanUp.add(() => s3.stop());
    const folder = mkdtempSync(join(tmpdir(), 'run-bridge-dispatchers-'));
    cleanUp.folder(folder);
    const folders = Array.from({ length: PROCESS_COUNT }, (_, index) => join(folder, `p${index}`));
    for (const each of folders) mkdirSync(each);
    const bridges: BridgeProcess[] = [];
    for (const each of folders)
      cleanUp.add(() => bridges.find(({ dataFolder }) => dataFolder === each)?.stop('SIGKILL'));
    for (const [index, dataFolder] of folders.entries()) bridges[index] = await start(dataFolder);

    const random = new SeededRandom(Number(process.env.SEED ?? 20_261_121));
    const receiver = await FlakyReceiver.open(random, 0.2, 20);
    cleanUp.add(() => receiver.close());
    const [first] = bridges;
    if (first === undefined) throw new Error('there is no process');
    await subscribe(first, tokenIn(folders), 'flaky', receiver.url);

    let turn = 0;
    const jobs = new ToldJobs(() => bridges[turn++ % PROCESS_COUNT]?.otlpUrl);
    let isDone = false;
    const working = jobs.run(JOB_COUNT, RUN_COUNT / JOB_COUNT).finally(() => {
      isDone = true;
    });
    const kills: string[] = [];
    const deliveredBy = new Set<string>();
    while (kills.length < KILL_COUNT) {
      const wanted = receiver.got.length + Math.ceil(((RUN_COUNT * 2) / KILL_COUNT) * random.next());
      await until('deliveries', () => isDone || receiver.got.length >= wanted, 60_000);
      await noteDelivering();
      const index = Math.floor(random.next() * PROCESS_COUNT);
      kills.push(`process ${index} after ${receiver.got.length} attempts`);
      await bridges[index]?.stop('SIGKILL');
      bridges[index] = await start(folders[index] ?? '');
    }
    await working;
    const audit = () => auditDeliveries(receiver.got, jobs.runs);
    await until('every event', () => audit().missing.length === 0, 90_000);
    await noteDelivering();
    console.log(`${receiver.got.length} attempts for ${RUN_COUNT * 2} events, ${kills.join('; ')}`);
    expect(audit()).toEqual({
      expectedCount: RUN_COUNT * 2,
      missing: [],
      madeUp: [],
      withSeveralIds: [],
      outOfOrder: [],
      overlapping: [],
    });
    expect(deliveredBy.size).toBe(PROCESS_COUNT);

    function start(dataFolder: string): Promise<BridgeProcess> {
      const bucket = ['--artifacts', `s3://${BUCKET}`, '--artifacts-endpoint', s3.endpoint];
      const rest = ['--artifacts-region', S3Server.region, '--processes', 'several', '--webhook-allow', 'loopback'];
      return BridgeProcess.start({
        dataFolder,
        args: [...bucket, ...rest, '--webhook-retries', RETRIES],
        env: {
          DATABASE_URL: postgres.url(),
          RUN_BRIDGE_WEBHOOK_KEY: Buffer.alloc(32, 1).toString('base64'),
          AWS_ACCESS_KEY_ID: S3Server.accessKeyId,
          AWS_SECRET_ACCESS_KEY: S3Server.secretAccessKey,
        },
      });
    }

    /** Which processes have delivered something since they were started. */
    async function noteDelivering(): Promise<void> {
      for (const { webUrl, dataFolder } of bridges) {
        const { checks } = readySchema.parse(await (await fetch(`${webUrl}/readyz?verbose`)).json());
        const own = checks.find(({ name }) => name === 'webhooks')?.details?.delivered ?? 0;
        if (own > 0) deliveredBy.add(dataFolder);
      }
    }
  });
});

/** Whichever process was the first has made it. */
function tokenIn(folders: readonly string[]): string {
  const path = folders.map((each) => join(each, 'admin-token')).find((each) => existsSync(each));
  if (path === undefined) throw new Error('no process has made a token');
  return readFileSync(path, 'utf8').trim();
}
