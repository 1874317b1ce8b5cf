import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { BridgeProcess } from '../tool/bridge-process.js';
import { subscribe } from '../tool/subscribe.js';
import { TRIAL, trialSize } from '../tool/trial.js';
import { until } from '../tool/until.js';
import { auditDeliveries } from './audit-deliveries.js';
import { FlakyReceiver } from './flaky-receiver.js';
import { NotifiedJobs } from './notified-jobs.js';
import { SeededRandom } from './seeded-random.js';

/** Events in all, two a run and an even number for each of the jobs. */
const EVENT_COUNT = 20 * Math.ceil(trialSize(160, 0.2) / 20);
const KILL_COUNT = Math.ceil(EVENT_COUNT / 80);
const JOB_COUNT = 10;
const RETRIES = Array(20).fill('200ms').join(',');

let folder: string;
let bridge: BridgeProcess | undefined;
let receiver: FlakyReceiver;
const random = new SeededRandom(TRIAL.seed);
beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'run-bridge-webhooks-'));
  receiver = await FlakyReceiver.open(random, 0.3);
});
afterEach(async () => {
  await bridge?.remove();
  await receiver.close();
  rmSync(folder, { recursive: true, force: true });
});

const start = async () => {
  const args = ['--webhook-allow', 'loopback', '--webhook-retries', RETRIES];
  bridge = await BridgeProcess.start({ dataFolder: folder, args });
  return bridge;
};

it('delivers every event at least once and in order, and makes none up, when it is killed again and again', async () => {
  const first = await start();
  await subscribe(first, readFileSync(join(folder, 'admin-token'), 'utf8').trim(), 'flaky', receiver.url);
  const jobs = new NotifiedJobs(() => bridge?.otlpUrl);
  let isDone = false;
  const working = jobs.run(JOB_COUNT, EVENT_COUNT / 2 / JOB_COUNT).finally(() => {
    isDone = true;
  });
  let killCount = 0;
  for (; killCount < KILL_COUNT; killCount += 1) {
    const from = receiver.got.length;
    const wanted = Math.ceil((EVENT_COUNT / KILL_COUNT) * random.next());
    await until('deliveries', () => isDone || receiver.got.length >= from + wanted);
    await bridge?.stop('SIGKILL');
    await start();
  }
  await working;
  const audit = () => auditDeliveries(receiver.got, jobs.runs);
  await until('every event', () => audit().missing.length === 0);
  console.log(`${EVENT_COUNT} events, ${killCount} kills, ${receiver.got.length} attempts`);
  expect(audit()).toEqual({
    expectedCount: EVENT_COUNT,
    missing: [],
    madeUp: [],
    withSeveralIds: [],
    outOfOrder: [],
    overlapping: [],
  });
  expect(killCount).toBe(KILL_COUNT);
});
