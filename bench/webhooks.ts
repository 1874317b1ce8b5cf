import { spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { systemClock } from '../src/core/clock.js';
import { silentLogger } from '../src/core/logger.js';
import { FIRST_ACCOUNT_ID } from '../src/storage/account-store.js';
import { DEFAULT_ATTEMPT_SCHEDULE, DEFAULT_BREAKER_LIMITS } from '../src/webhook/circuit-breaker.js';
import { DISPATCHER_DEFAULTS, WebhookDispatcher } from '../src/webhook/dispatcher.js';
import { AddressRules, parseAllowed, WebhookHttp } from '../src/webhook/http.js';
import { SecretBox, sealUrl } from '../src/webhook/secrets.js';
import { PlatformSender } from '../src/webhook/senders.js';
import { NO_FILTER } from '../src/webhook/subscription.js';
import { type FeatureState, openFeatureState } from '../test/fake/webhook-facts.js';
import { thisMachine } from './machine.js';
import { notedCommand } from './noted-command.js';

const { values } = parseArgs({
  options: {
    deliveries: { type: 'string', default: '10000' },
    /** Of the paced part, a second; 0 leaves it out. */
    rate: { type: 'string', default: '100' },
  },
});
const deliveryCount = Number(values.deliveries);
const rate = Number(values.rate);
const SECRET = `whsec_${Buffer.alloc(24, 7).toString('base64')}`;
/** Answers at once; what comes to `/dead` never. */
const RECEIVER = `require('node:http').createServer((q, s) => { q.resume(); q.on('end', () => { if (q.url !== '/dead') s.end(); }); })
  .listen(0, '127.0.0.1', function () { console.log(this.address().port); })`;

const child = spawn(process.execPath, ['-e', RECEIVER], { stdio: ['ignore', 'pipe', 'inherit'] });
try {
  const [line] = await once(child.stdout, 'data');
  const port = Number(String(line));
  console.log(JSON.stringify(thisMachine()));
  for (const subscriptions of [1, 1_000]) await throughput(port, subscriptions);
  if (rate > 0) {
    const p99 = { none: await paced(port, 0), some: await paced(port, 0.1) };
    console.log(`p99 of the live ones: ${(p99.some / p99.none).toFixed(2)} times that without dead ones`);
  }
} finally {
  child.kill();
}

/** Everything is due at once: how long it takes, and the CPU of it. */
async function throughput(port: number, subscriptionCount: number): Promise<void> {
  await withBench(port, subscriptionCount, 0, async (state, dispatcher) => {
    const runCount = Math.max(1, Math.round(deliveryCount / subscriptionCount));
    for (let at = 0; at < runCount; at += 1) await endRun(state, at);
    const total = runCount * subscriptionCount;
    const cpu = process.cpuUsage();
    const startedMs = performance.now();
    await dispatcher.flush(AbortSignal.timeout(300_000));
    const seconds = (performance.now() - startedMs) / 1_000;
    const { user, system } = process.cpuUsage(cpu);
    const cpuMs = (user + system) / 1_000 / (total / 1_000);
    const counted = `${dispatcher.counts.delivered} delivered in ${seconds.toFixed(1)} s`;
    console.log(
      `${subscriptionCount} subscriptions: ${(total / seconds).toFixed(0)} deliveries/s, ${cpuMs.toFixed(0)} ms of CPU for 1,000 (${counted})`,
    );
  });
}

/** Runs end at a steady pace, each told to 1,000 subscriptions; half of the dead ones refuse, half never answer. */
async function paced(port: number, deadPart: number): Promise<number> {
  let p99 = 0;
  await withBench(port, 1_000, deadPart, async (state, dispatcher) => {
    await dispatcher.start();
    const runCount = 8;
    for (let at = 0; at < runCount; at += 1) {
      await endRun(state, at);
      dispatcher.wake();
      await sleep((1_000 / rate) * 1_000);
    }
    await sleep(5_000);
    const delays: number[] = [];
    const errors = new Map<string, number>();
    for (let at = 0; at < 1_000 * (1 - deadPart); at += 1) {
      const id = `wsu_live${at}`;
      const { items } = await state.webhookEvents.list(FIRST_ACCOUNT_ID, {
        of: { subscriptionId: id },
        limit: 100,
        offset: 0,
      });
      for (const event of items) {
        const attempts = await state.webhookEvents.attemptsOf(event.id);
        const attempt = attempts.find(({ error }) => error === null);
        for (const { error } of attempts) if (error !== null) errors.set(error, (errors.get(error) ?? 0) + 1);
        const endedUnixMs = attempt === undefined ? Date.now() : attempt.startedUnixMs + attempt.durationMs;
        delays.push(endedUnixMs - event.createdUnixMs);
      }
    }
    for (const [error, count] of errors) console.log(`${count} attempts at live ones: ${error}`);
    delays.sort((a, b) => a - b);
    p99 = delays[Math.floor(delays.length * 0.99)] ?? 0;
    const median = delays[delays.length >> 1] ?? 0;
    console.log(
      `1,000 subscriptions, ${deadPart * 100}% dead, ${rate} deliveries/s: p50 ${median} ms, p99 ${p99} ms of ${delays.length} to live ones; ${dispatcher.counts.failedAttempts} failed attempts`,
    );
  });
  return p99;
}

async function withBench(
  port: number,
  count: number,
  deadPart: number,
  body: (state: FeatureState, dispatcher: WebhookDispatcher) => Promise<void>,
): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'run-bridge-webhooks-'));
  const state = await openFeatureState(join(folder, 'state.db'));
  const box = new SecretBox(randomBytes(32));
  const rules = new AddressRules(parseAllowed('loopback') ?? []);
  const http = new WebhookHttp({ rules, timeoutMs: 10_000, resolve: async () => [] }, systemClock);
  const sender = new PlatformSender({
    http,
    openBox: async () => box,
    clock: systemClock,
    runDetails: {
      statusMessage: async (_accountId, _runId, message) => message,
      read: () => Promise.reject(new Error('no message is made here')),
    },
    version: 'bench',
  });
  const { webhookEvents: events, subscriptions } = state;
  const dispatcher = new WebhookDispatcher(
    { ...DISPATCHER_DEFAULTS, schedule: DEFAULT_ATTEMPT_SCHEDULE, limits: DEFAULT_BREAKER_LIMITS },
    {
      ...{ events, subscriptions, holder: 'bench', clock: systemClock, random: Math.random, logger: silentLogger },
      senderOf: () => sender,
      selector: { select: noDetails },
      newKsuid: () => '',
    },
  );
  const deadCount = Math.round(count * deadPart);
  for (let at = 0; at < count; at += 1) {
    const isDead = at >= count - deadCount;
    const id = `wsu_${isDead ? 'dead' : 'live'}${at}`;
    const dead = at % 2 === 0 ? 'http://127.0.0.1:1/' : `http://127.0.0.1:${port}/dead`;
    await subscriptions.add({
      ...{ id, accountId: FIRST_ACCOUNT_ID, createdUnixMs: at, kind: 'http', name: id, description: '' },
      ...sealUrl(isDead ? dead : `http://127.0.0.1:${port}/${at}`, 'http', id, box),
      ...{ eventTypes: ['job.run.completed'], jobIds: [], filter: NO_FILTER, state: 'active', archiveReason: null },
      ...{ hasRunDetails: false, isPerOwner: false, holdsRepeats: false },
      ...{ hasAuthorization: true, hasStandardHeaders: true, maxPerMinute: null, sealedHeaders: null },
      ...{
        signatureHeader: 'authorization',
        sealedTemplate: null,
        sealedRoutingKey: null,
        notifyOnArchive: null,
        expectMs: null,
      },
      ...{ sealedSecret: box.seal(SECRET, id), sealedOldSecret: null, oldSecretUntilUnixMs: null },
    });
  }
  try {
    await body(state, dispatcher);
  } finally {
    await dispatcher.shutdown(AbortSignal.abort());
    http.close();
    await state.close();
    rmSync(folder, { recursive: true, force: true });
  }
}

/** A run of one of fifty jobs ends. */
async function endRun(state: FeatureState, index: number): Promise<void> {
  const note = notedCommand(randomBytes(16).toString('hex'), {
    ...{ verdict: 'success', startedUnixMs: 1_000, endedUnixMs: 2_000, isSaved: true },
    scope: { job: `job ${index % 50}`, environment: 'production', project: 'shop' },
  });
  await state.invocations.note([note], Date.now());
}

/** No subscription here asks for what is known of runs. */
function noDetails(): Promise<never> {
  return Promise.reject(new Error('there are no details of runs here'));
}
