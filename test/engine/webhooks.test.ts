import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer as createHttpServer } from 'node:http';
import { type AddressInfo, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { z } from 'zod';
import { BridgeProcess } from '../tool/bridge-process.js';
import { Engine, type EngineResult } from '../tool/engine.js';
import { type FetchedDelivery, FetchingReceiver } from '../tool/fetching-receiver.js';
import { PythonReceiver } from '../tool/python-receiver.js';
import { subscribe } from '../tool/subscribe.js';
import { until } from '../tool/until.js';

const main = new URL('../../dist/main.js', import.meta.url).pathname;
const eventsSchema = z.object({ data: z.array(z.object({ id: z.string() })) });

/** Type, status and its number. */
type DeliveredWords = readonly (readonly [string, string, number])[];
const STARTED = ['job.run.started', 'Running', 3] as const;

describe('webhooks of runs of the real engine under exec', () => {
  let engine: Engine;
  let bridge: BridgeProcess;
  let folder: string;
  let token: string;
  let python: PythonReceiver;
  let fetching: FetchingReceiver;

  beforeAll(async () => {
    engine = Engine.up('core');
    folder = mkdtempSync(join(tmpdir(), 'run-bridge-webhooks-'));
    bridge = await BridgeProcess.start({ args: ['--webhook-allow', 'loopback'] });
    token = readFileSync(join(bridge.dataFolder, 'admin-token'), 'utf8').trim();
    python = await PythonReceiver.open(bridge, token);
    fetching = await FetchingReceiver.open(bridge, token);
  });
  afterAll(async () => {
    await bridge?.remove();
    await python?.close();
    await fetching?.close();
    engine?.remove();
    rmSync(folder, { recursive: true, force: true });
  });

  const exec = (
    command: readonly string[],
    onStart?: (child: ChildProcess) => void,
    env: Readonly<Record<string, string>> = {},
  ): Promise<EngineResult> => {
    const line = [process.execPath, main, 'exec', '--to', bridge.otlpUrl, '--', ...command];
    return engine.runCommand(line, { RUN_BRIDGE_DATA_DIR: folder, ...env }, onStart);
  };

  /** The deliveries for the one run of a command, once it is over and every receiver got all of them. */
  async function deliveriesOf(command: () => Promise<unknown>): Promise<readonly FetchedDelivery[]> {
    const from = fetching.deliveries.length;
    await command();
    const own = () => fetching.deliveries.slice(from);
    await until('the end', () => own().some(({ eventType }) => eventType === 'job.run.completed'));
    await until('the other receiver', () => python.deliveries.length === fetching.deliveries.length);
    expect(new Set(own().map(({ data }) => data.runId)).size).toBe(1);
    return own();
  }
  const words = (deliveries: readonly FetchedDelivery[]): DeliveredWords =>
    deliveries.map(({ eventType, data }) => [eventType, data.runStatus, data.runStatusCode]);
  const artifactsOf = (deliveries: readonly FetchedDelivery[]) => deliveries.at(-1)?.artifacts ?? {};

  it('say started, errored and completed of a run that fails, which by then can be downloaded', async () => {
    const deliveries = await deliveriesOf(() => exec(['dbt', 'build', '--exclude', 'tag:slow']));
    expect(words(deliveries)).toEqual([
      STARTED,
      ['job.run.errored', 'Errored', 20],
      ['job.run.completed', 'Errored', 20],
    ]);
    expect(deliveries.at(-1)?.data).toMatchObject({ dbtVersion: expect.stringMatching(/^2\./) });
    const found = Object.entries(artifactsOf(deliveries));
    expect(found.map(([path]) => path)).toEqual(
      expect.arrayContaining(['manifest.json', 'run_results.json', 'metadata/telemetry-1-otel.parquet']),
    );
    // Models that select nothing compile to nothing.
    expect(found.filter(([path, bytes]) => bytes === 0 && !path.endsWith('.sql'))).toEqual([]);
  });

  it('say started and completed of a run that succeeds', async () => {
    const deliveries = await deliveriesOf(() => exec(['dbt', 'build', '--exclude', 'tag:slow', 'tag:bad']));
    expect(words(deliveries)).toEqual([STARTED, ['job.run.completed', 'Success', 10]]);
    expect(artifactsOf(deliveries)['run_results.json']).toBeGreaterThan(1_000);
    expect(artifactsOf(deliveries)['metadata/telemetry-1-otel.parquet']).toBeGreaterThan(10_000);
  });

  it('say completed alone, as cancelled, of a run that is interrupted', async () => {
    const jsonl = join(engine.project, 'logs', 'own.jsonl');
    const isAtWork = () => existsSync(jsonl) && readFileSync(jsonl, 'utf8').includes('processed (model.shop.slow_a)');
    const deliveries = await deliveriesOf(() =>
      exec(['dbt', 'build', '--select', '+slow_a', '+slow_b', '--otel-file-name', 'own.jsonl'], (child) => {
        void until('a slow model', isAtWork).then(() => child.kill('SIGTERM'));
      }),
    );
    expect(words(deliveries)).toEqual([STARTED, ['job.run.completed', 'Cancelled', 30]]);
  });

  it('say errored of an engine that is killed in a script that ends well, and nothing of a success', async () => {
    const jsonl = join(engine.project, 'logs', 'killed.jsonl');
    const isAtWork = () => existsSync(jsonl) && readFileSync(jsonl, 'utf8').includes('processed (model.shop.slow_a)');
    const killed = 'dbt build --select +slow_a & echo $! > engine.pid; wait; echo done';
    const deliveries = await deliveriesOf(() =>
      exec(
        ['sh', '-c', killed],
        () => {
          void until('a slow model', isAtWork).then(() =>
            process.kill(Number(readFileSync(join(engine.project, 'engine.pid'), 'utf8')), 'SIGKILL'),
          );
        },
        { DBT_OTEL_FILE_NAME: 'killed.jsonl' },
      ),
    );
    expect(words(deliveries)).toEqual([
      STARTED,
      ['job.run.errored', 'Errored', 20],
      ['job.run.completed', 'Errored', 20],
    ]);
  });

  it('are of one run where the telemetry does not say whose it is, however long its command goes on', async () => {
    // A script with resource attributes of its own takes away those that exec has added. It goes on for longer than news are
    // kept back of what may be another run.
    const deliveries = await deliveriesOf(() =>
      exec(['sh', '-c', 'OTEL_RESOURCE_ATTRIBUTES=team=data dbt parse && sleep 4']),
    );
    expect(words(deliveries)).toEqual([STARTED, ['job.run.completed', 'Success', 10]]);
  });

  it('to an endpoint that never answers leave the exit code of the command as it is', async () => {
    const endpoint = createServer((socket) => {
      socket.on('error', () => {});
      socket.once('data', () => socket.write('HTTP/1.1 101 S\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n'));
    }).listen(0, '127.0.0.1');
    await once(endpoint, 'listening');
    const own = await BridgeProcess.start({ args: ['--webhook-allow', 'loopback'] });
    try {
      const { port } = endpoint.address() as AddressInfo;
      const ownToken = readFileSync(join(own.dataFolder, 'admin-token'), 'utf8').trim();
      await subscribe(own, ownToken, 'hostile', `http://127.0.0.1:${port}/`);
      await own.stop();
      const env = { RUN_BRIDGE_DATA_DIR: own.dataFolder, RUN_BRIDGE_WEBHOOK_ALLOW: 'loopback' };
      const line = [process.execPath, main, 'exec', '--', 'dbt', 'parse'];
      expect((await engine.runCommand(line, env)).exitCode).toBe(0);
    } finally {
      await own.remove();
      endpoint.close();
    }
  });

  it('say to chats what is wrong where a project cannot be parsed or rendered', async () => {
    const posts: { readonly path: string; readonly body: string }[] = [];
    const chats = createHttpServer((request, response) => {
      const chunks: Buffer[] = [];
      request.on('data', (chunk: Buffer) => chunks.push(chunk));
      request.on('end', () => {
        posts.push({ path: request.url ?? '', body: Buffer.concat(chunks).toString() });
        response.end('ok');
      });
    }).listen(0, '127.0.0.1');
    await once(chats, 'listening');
    const { port } = chats.address() as AddressInfo;
    const model = join(engine.project, 'models', 'wrong.sql');
    try {
      for (const type of ['slack', 'teams']) {
        const made = await fetch(`${bridge.webUrl}/api/run-bridge/v1/webhooks`, {
          ...{ method: 'POST', headers: { authorization: `Token ${token}` } },
          body: JSON.stringify({
            ...{ type, name: type, client_url: `http://127.0.0.1:${port}/${type}` },
            event_types: ['job.run.errored', 'job.run.completed'],
          }),
        });
        expect(made.status).toBe(201);
      }
      for (const [sql, command, cause] of [
        ["select {{ ref('stg_orders' }} as x", 'parse', 'unexpected end of variable block'],
        ["select * from {{ ref('not_there') }}", 'compile', "Ref 'not_there' not found"],
        ['select {{ no_such_macro(1) }}', 'build', 'no_such_macro'],
      ] as const) {
        posts.length = 0;
        writeFileSync(model, sql);
        expect((await exec(['dbt', command])).exitCode).toBe(1);
        await until('the one message in both chats', () => posts.length === 2);
        for (const { path, body } of posts) {
          // Teams reads Markdown, so underscores are escaped.
          const text = path === '/teams' ? body.replaceAll('\\\\_', '_') : body;
          expect(text).toContain(cause);
          expect(text).toContain('models/wrong.sql');
        }
      }
    } finally {
      rmSync(model, { force: true });
      chats.closeAllConnections();
      chats.close();
    }
  });

  it('are signed in both ways and complete, each with the id that the log of events has', async () => {
    const path = `/api/v3/accounts/10001/webhooks/subscription/${python.subscriptionId}/events?limit=100`;
    const answer = await fetch(bridge.webUrl + path, { headers: { authorization: `Token ${token}` } });
    const { data: logged } = eventsSchema.parse(await answer.json());
    const hasAll = (deliveries: readonly unknown[]) => deliveries.length >= logged.length;
    await until('every event at both receivers', () => hasAll(python.deliveries) && hasAll(fetching.deliveries));
    expect(fetching.deliveries.every(({ isSigned }) => isSigned)).toBe(true);
    const { deliveries } = python;
    expect(deliveries.map(({ event }) => event)).toEqual(fetching.deliveries.map(({ eventType }) => eventType));
    for (const one of deliveries) expect(one).toMatchObject({ sig_dbt: true, sig_standard: true, bad: [] });
    expect(deliveries.map(({ eventId }) => eventId)).toEqual(logged.map(({ id }) => id).toReversed());
  });
});
