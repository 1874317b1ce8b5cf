import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { z } from 'zod';
import { BridgeProcess } from '../tool/bridge-process.js';
import { until } from '../tool/until.js';
import { SeededRandom } from './seeded-random.js';

/** Events in all, two a run; the whole trial has 2,000. */
const RUN_COUNT = Number(process.env.CRASH_EVENTS ?? 400) / 2;
const KILL_COUNT = Math.ceil(RUN_COUNT / 40);
const JOB_COUNT = 10;
const RETRIES = Array(20).fill('200ms').join(',');

const deliverySchema = z.looseObject({
  eventId: z.string(),
  eventType: z.string(),
  data: z.looseObject({ jobName: z.string(), runId: z.string() }),
});
type Delivery = z.output<typeof deliverySchema>;

let folder: string;
let bridge: BridgeProcess | undefined;
let receiver: Server;
const got: (Delivery & { readonly isTaken: boolean })[] = [];
const random = new SeededRandom(20_261_121);
beforeEach(async () => {
  got.length = 0;
  folder = mkdtempSync(join(tmpdir(), 'run-bridge-webhooks-'));
  receiver = createServer((request, response) => {
    let body = '';
    request.on('data', (chunk) => {
      body += chunk;
    });
    request.on('end', () => {
      const isTaken = random.next() > 0.3;
      got.push({ ...deliverySchema.parse(JSON.parse(body)), isTaken });
      response.writeHead(isTaken ? 200 : 500).end();
    });
  });
  await new Promise<void>((resolve) => receiver.listen(0, '127.0.0.1', resolve));
});
afterEach(async () => {
  await bridge?.remove();
  receiver.closeAllConnections();
  await new Promise((resolve) => receiver.close(resolve));
  rmSync(folder, { recursive: true, force: true });
});

const start = async () => {
  const args = ['--webhook-allow', 'loopback', '--webhook-retries', RETRIES];
  bridge = await BridgeProcess.start({ dataFolder: folder, args });
  return bridge;
};

/** Says something to whichever bridge lives, until it is answered. */
async function say(path: string, body: object): Promise<unknown> {
  return await until(
    path,
    async () => {
      try {
        const url = `${bridge?.otlpUrl}/api/run-bridge/v1/executions/${path}`;
        const headers = { 'Content-Type': 'application/json' };
        const answer = await fetch(url, { method: 'PUT', headers, body: JSON.stringify(body) });
        return answer.ok ? (await answer.text()) || '{}' : undefined;
      } catch {
        return undefined;
      }
    },
    60_000,
  );
}

/** Runs of one job, one after the other. Returns their numbers. */
async function runJob(job: string, count: number): Promise<string[]> {
  const ids: string[] = [];
  for (let at = 0; at < count; at += 1) {
    const step = `steps/${job}-${at}`;
    const begun = await say(step, { command: ['true'], started_unix_ms: Date.now(), job });
    ids.push(String(z.object({ run_id: z.number() }).parse(JSON.parse(String(begun))).run_id));
    await say(`${step}/end`, { ending: { kind: 'exited', exit_code: 0 }, ended_unix_ms: Date.now() });
  }
  return ids;
}

it('delivers every event at least once and in order, and makes none up, when it is killed again and again', async () => {
  const first = await start();
  const token = readFileSync(join(folder, 'admin-token'), 'utf8').trim();
  const made = await fetch(`${first.webUrl}/api/v3/accounts/10001/webhooks/subscriptions`, {
    method: 'POST',
    headers: { Authorization: `Token ${token}` },
    body: JSON.stringify({
      name: 'flaky',
      client_url: `http://127.0.0.1:${(receiver.address() as AddressInfo).port}/`,
      event_types: ['job.run.started', 'job.run.errored', 'job.run.completed'],
    }),
  });
  expect(made.status).toBe(201);
  const jobs = Array.from({ length: JOB_COUNT }, (_, at) => `job${at}`);
  const working = Promise.all(jobs.map((job) => runJob(job, RUN_COUNT / JOB_COUNT)));
  let isDone = false;
  void working.finally(() => {
    isDone = true;
  });
  let killCount = 0;
  for (; killCount < KILL_COUNT; killCount += 1) {
    const from = got.length;
    const wanted = Math.ceil(((RUN_COUNT * 2) / KILL_COUNT) * random.next());
    await until('deliveries', () => isDone || got.length >= from + wanted, 60_000);
    await bridge?.stop('SIGKILL');
    await start();
  }
  const runs = await working;
  const expected = runs.flatMap((ids) => ids.flatMap((id) => [`${id} job.run.started`, `${id} job.run.completed`]));
  const keyOf = ({ data, eventType }: Delivery) => `${data.runId} ${eventType}`;
  const takenOf = () => new Set(got.filter(({ isTaken }) => isTaken).map(keyOf));
  await until('every event', () => takenOf().size >= expected.length, 240_000);
  expect([...takenOf()].sort()).toEqual([...expected].sort());
  // None was made up: what came, taken or not, is of these, and each event has one id.
  expect([...new Set(got.map(keyOf))].sort()).toEqual([...expected].sort());
  expect(new Set(got.map((one) => `${keyOf(one)} ${one.eventId}`)).size).toBe(expected.length);
  for (const [at, job] of jobs.entries()) {
    const firsts = new Set(got.filter(({ data }) => data.jobName === job).map(keyOf));
    const order = (runs[at] ?? []).flatMap((id) => [`${id} job.run.started`, `${id} job.run.completed`]);
    expect([...firsts], job).toEqual(order);
  }
  expect(killCount).toBe(KILL_COUNT);
});
