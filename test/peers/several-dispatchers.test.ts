import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { z } from 'zod';
import { auditDeliveries } from '../crash/audit-deliveries.js';
import { FlakyReceiver } from '../crash/flaky-receiver.js';
import { NotifiedJobs } from '../crash/notified-jobs.js';
import { SeededRandom } from '../crash/seeded-random.js';
import { BridgeCluster } from '../tool/bridge-cluster.js';
import { FetchingReceiver } from '../tool/fetching-receiver.js';
import { SentRun } from '../tool/sent-run.js';
import { subscribe } from '../tool/subscribe.js';
import { TRIAL, trialSize } from '../tool/trial.js';
import { until } from '../tool/until.js';

const PROCESS_COUNT = 3;
const JOB_COUNT = 8;
const RUN_COUNT = JOB_COUNT * trialSize(8, 4);
const KILL_COUNT = trialSize(2, 30);
const RETRIES = Array(20).fill('200ms').join(',');

const readySchema = z.object({
  checks: z.array(
    z.looseObject({ name: z.string(), details: z.looseObject({ delivered: z.number().optional() }).optional() }),
  ),
});

describe('several processes that deliver webhooks', () => {
  let cluster: BridgeCluster;
  beforeAll(async () => {
    const roles = Array<'all'>(PROCESS_COUNT).fill('all');
    cluster = await BridgeCluster.start(roles, ['--webhook-allow', 'loopback', '--webhook-retries', RETRIES]);
  });
  afterAll(() => cluster?.remove());

  it('make each attempt once, in order per job, and lose no event, whichever of them are killed', {
    timeout: 600_000,
  }, async () => {
    const random = new SeededRandom(TRIAL.seed);
    const receiver = await FlakyReceiver.open(random, 0.2, 20);
    await subscribe(cluster.bridge(0), cluster.token, 'flaky', receiver.url);
    let turn = 0;
    const jobs = new NotifiedJobs(() => cluster.bridges[turn++ % PROCESS_COUNT]?.otlpUrl);
    let isDone = false;
    const working = jobs.run(JOB_COUNT, RUN_COUNT / JOB_COUNT).finally(() => {
      isDone = true;
    });
    const kills: string[] = [];
    const deliveredBy = new Set<string>();
    while (kills.length < KILL_COUNT) {
      const wanted = receiver.got.length + Math.ceil(((RUN_COUNT * 2) / KILL_COUNT) * random.next());
      await until('deliveries', () => isDone || receiver.got.length >= wanted);
      await noteDelivering();
      const index = Math.floor(random.next() * PROCESS_COUNT);
      kills.push(`process ${index} after ${receiver.got.length} attempts`);
      await cluster.bridge(index).stop('SIGKILL');
      await cluster.restart(index);
    }
    await working;
    const audit = () => auditDeliveries(receiver.got, jobs.runs);
    await until('every event', () => audit().missing.length === 0);
    await noteDelivering();
    await receiver.close();
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

    /** Notes which processes have delivered something since they were started. */
    async function noteDelivering(): Promise<void> {
      for (const { webUrl, dataFolder } of cluster.bridges) {
        const { checks } = readySchema.parse(await (await fetch(`${webUrl}/readyz?verbose`)).json());
        const delivered = checks.find(({ name }) => name === 'webhooks')?.details?.delivered ?? 0;
        if (delivered > 0) deliveredBy.add(dataFolder);
      }
    }
  });

  it('say that a run is over once any of them has its telemetry, whichever got it', async () => {
    const receiver = await FetchingReceiver.open(cluster.bridge(0), cluster.token);
    for (const bridge of cluster.bridges) await new SentRun().send(bridge.otlpUrl);
    const completed = () => receiver.deliveries.filter(({ eventType }) => eventType === 'job.run.completed');
    await until('the ends', () => completed().length === PROCESS_COUNT);
    await receiver.close();
    const sizes = completed().map(({ artifacts }) => artifacts['metadata/telemetry-1-otel.parquet']);
    expect(sizes.every((bytes) => bytes !== undefined && bytes > 10_000)).toBe(true);
    expect(receiver.deliveries.filter(({ isSigned }) => !isSigned)).toEqual([]);
    expect(receiver.deliveries).toHaveLength(2 * PROCESS_COUNT);
  });
});
