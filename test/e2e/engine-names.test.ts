import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { asyncBufferFromFile, parquetReadObjects } from 'hyparquet';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { JsonCodec } from '../../src/otlp/json-codec.js';
import { ProtobufCodec } from '../../src/otlp/protobuf-codec.js';
import type { Signal } from '../../src/record/record-batch.js';
import { frame, GrpcClient, LOGS_PATH, TRACES_PATH } from '../fake/grpc-client.js';
import { OtlpReceiver } from '../fake/otlp-receiver.js';
import { bodiesIn, sampleBodies, sampleFolder, sampleTraceId } from '../fake/sample-run.js';
import { BridgeProcess } from '../tool/bridge-process.js';
import { FetchingReceiver } from '../tool/fetching-receiver.js';
import { olderDbtTrace } from '../tool/older-dbt.js';
import { copyRenamed, type Renaming, renamed } from '../tool/renamed.js';
import { traceIdsIn } from '../tool/trace-ids.js';
import { until } from '../tool/until.js';
import { runBridge } from './run-bridge.js';

const RUN = 'build-mixed';
const TRACE = sampleTraceId(RUN);
const STAND_IN = new URL('../tool/stand-in-engine.mjs', import.meta.url).pathname;
const TIMEOUT_MS = 120_000;
const codecs = { protobuf: new ProtobufCodec(), json: new JsonCodec() };

const NAMES: readonly (readonly [string, Renaming])[] = [
  ['dbt', { service: 'dbt', scope: 'dbt' }],
  ['dbt-oss, and nothing but the version', { service: 'dbt-oss', scope: 'dbt-oss', keeps: ['service.version'] }],
  ["a team's name", { service: 'analytics', scope: 'dbt' }],
  ['names that nobody knows', { service: 'melange', scope: 'melange' }],
];

let dir: string;
let destination: OtlpReceiver;
const started: BridgeProcess[] = [];
beforeEach(async () => {
  dir = mkdtempSync(join(tmpdir(), 'run-bridge-names-'));
  destination = await OtlpReceiver.listen();
});
afterEach(async () => {
  await Promise.all(started.splice(0).map((bridge) => bridge.remove()));
  destination.close();
  rmSync(dir, { recursive: true, force: true });
});

async function serve(...args: readonly string[]): Promise<BridgeProcess> {
  const bridge = await BridgeProcess.start({ args, env: { OTEL_EXPORTER_OTLP_ENDPOINT: destination.url } });
  started.push(bridge);
  return bridge;
}

async function post(url: string, signal: Signal, body: Uint8Array, type = 'application/x-protobuf'): Promise<void> {
  const answer = await fetch(`${url}/v1/${signal}`, {
    method: 'POST',
    headers: { 'content-type': type },
    body: Buffer.from(body),
  });
  expect(answer.status).toBe(200);
}

/** Ways in which a body gets to a bridge. */
const WAYS = {
  protobuf: (bridge: BridgeProcess, signal: Signal, body: Uint8Array) => post(bridge.otlpUrl, signal, body),
  json: (bridge: BridgeProcess, signal: Signal, body: Uint8Array) =>
    post(bridge.otlpUrl, signal, codecs.json.encode(codecs.protobuf.decode(signal, body)), 'application/json'),
  grpc: async (bridge: BridgeProcess, signal: Signal, body: Uint8Array) => {
    const client = new GrpcClient(Number(new URL(bridge.grpcUrl).port));
    const answer = await client.call(frame(body), signal === 'traces' ? TRACES_PATH : LOGS_PATH);
    client.destroy();
    expect(answer.code).toBe(0);
  },
};

/** What is to be the same under all names: of the run's file what is no time of this machine, and what was exported. */
function outcomeOf(dataFolder: string): unknown {
  const { steps } = JSON.parse(readFileSync(join(dataFolder, 'runs', TRACE, 'run.json'), 'utf8'));
  const { verdict, node_counts, test_counts } = steps[0];
  return {
    stepCount: steps.length,
    ...{ verdict, node_counts, test_counts },
    lines: readFileSync(join(dataFolder, 'runs', TRACE, 'telemetry.jsonl'), 'utf8').split('\n').length,
    spanNames: [...destination.spanNames].filter((name) => !name.startsWith('exec ')).sort(),
  };
}

const spanCount = sampleBodies(RUN)
  .filter(({ signal }) => signal === 'traces')
  .map(({ body }) => codecs.protobuf.decode('traces', body))
  .flatMap(({ resources }) => resources.flatMap(({ scopes }) => scopes.map(({ records }) => records.length)))
  .reduce((sum, count) => sum + count, 0);

/** What programs and people get of the run: its nodes, its page, the rows of its Parquet, its webhooks. */
async function shownOf(bridge: BridgeProcess, receiver: FetchingReceiver): Promise<unknown> {
  const { deliveries } = receiver;
  const headers = { authorization: `Token ${adminToken(bridge)}` };
  await until('the last webhook', () => deliveries.some(({ eventType }) => eventType === 'job.run.completed'));
  const file = await asyncBufferFromFile(join(bridge.runFolder(TRACE), 'telemetry.parquet'));
  const rows = await parquetReadObjects({ file });
  return {
    nodes: await (await fetch(`${bridge.webUrl}/api/run-bridge/v1/runs/${TRACE}/nodes`, { headers })).json(),
    page: (await pageOf(bridge, '/runs/1001')).match(/<h[12][^>]*>.*?<\/h[12]>/gs),
    rows: rows.map(rowText).sort(),
    webhooks: deliveries.map(({ eventType, data }) => [eventType, data.runStatus]),
  };
}

/** Sends the run and waits until it has ended and everything has arrived. */
async function outcomeOfServe(
  way: keyof typeof WAYS,
  to: Renaming,
): Promise<{ bridge: BridgeProcess; outcome: unknown }> {
  const bridge = await serve('--webhook-allow', 'loopback');
  const receiver = await FetchingReceiver.open(bridge, adminToken(bridge));
  for (const { signal, body } of sampleBodies(RUN)) await WAYS[way](bridge, signal, renamed(signal, body, to));
  await bridge.finished(TRACE, TIMEOUT_MS);
  await until('all spans at the destination', () => new Set(destination.spanIds).size >= spanCount, TIMEOUT_MS);
  const outcome = [outcomeOf(bridge.dataFolder), await shownOf(bridge, receiver)];
  await receiver.close();
  return { bridge, outcome };
}

/** A row without the message in which the engine says its name. */
function rowText(row: unknown): string {
  const text = JSON.stringify(row, (_, value) => (typeof value === 'bigint' ? `${value}` : value));
  return text.replaceAll(/action\\?":\\?"[^"\\]*/g, 'action');
}

function adminToken({ dataFolder }: BridgeProcess): string {
  return readFileSync(join(dataFolder, 'admin-token'), 'utf8').trim();
}

/** A page, as whoever has the data folder sees it. */
async function pageOf(bridge: BridgeProcess, path: string): Promise<string> {
  const { stdout } = await runBridge(['open', '--print', '--data-dir', bridge.dataFolder], { cwd: dir });
  const signedIn = await fetch(stdout.trim(), { redirect: 'manual' });
  const cookie = signedIn.headers.get('set-cookie')?.split(';')[0] ?? '';
  return await (await fetch(`${bridge.webUrl}${path}`, { headers: { cookie } })).text();
}

describe.each(Object.keys(WAYS) as (keyof typeof WAYS)[])('over %s to serve', (way) => {
  let old: unknown;
  test.each(NAMES)(
    'the run under %s is the run under its old names, exported once',
    async (_, to) => {
      if (old === undefined) {
        ({ outcome: old } = await outcomeOfServe(way, { service: 'dbt-core', scope: 'dbt-core' }));
        destination.close();
        destination = await OtlpReceiver.listen();
      }
      const { bridge, outcome } = await outcomeOfServe(way, to);
      expect(outcome).toEqual(old);
      expect(destination.spanIds.length).toBe(spanCount);
      expect(readdirSync(bridge.dataFolder)).not.toContain('foreign');
      const metrics = await (await fetch(`${bridge.webUrl}/metrics`)).text();
      const isNew = to.scope === 'melange';
      expect(bridge.stderr.match(/under a name that is not known/g)?.length ?? 0).toBe(isNew ? 1 : 0);
      const counted = /new_name_items_total\{signal="traces"\} (\d+)/.exec(metrics)?.[1];
      expect(Number(counted)).toBe(isNew ? spanCount : 0);
      const settings = await pageOf(bridge, '/settings');
      expect(settings.includes('melange')).toBe(isNew);
    },
    TIMEOUT_MS,
  );
});

describe('under exec', () => {
  const exec = (script: readonly string[]) =>
    runBridge(['exec', '--', ...script], {
      cwd: dir,
      env: {
        ...{ PATH: process.env.PATH ?? '', HOME: dir, TMPDIR: dir, RUN_BRIDGE_DATA_DIR: join(dir, 'data') },
        OTEL_EXPORTER_OTLP_ENDPOINT: destination.url,
      },
    });

  test.each(NAMES.flatMap(([name, to]) => [[], ['--no-file']].map((flags) => [name, flags, to] as const)))(
    'a command under %s with the flags %j comes to the destination once, and redacted',
    async (_, flags, to) => {
      const sample = join(dir, 'sample');
      copyRenamed(sampleFolder(RUN), sample, to);
      await exec([process.execPath, STAND_IN, sample, ...flags]);
      expect(destination.spanIds.length).toBe(new Set(destination.spanIds).size);
      expect(new Set(destination.spanIds).size).toBeGreaterThanOrEqual(spanCount);
      const { steps } = JSON.parse(readFileSync(join(dir, 'data', 'runs', TRACE, 'run.json'), 'utf8'));
      expect(steps.length).toBe(1);
      const passthrough = join(dir, 'data', 'foreign');
      const passed = readdirSync(join(dir, 'data')).includes('foreign')
        ? readdirSync(passthrough).map((file) => readFileSync(join(passthrough, file), 'utf8'))
        : [];
      expect(passed.join('')).not.toContain('unique_id');
    },
    TIMEOUT_MS,
  );
});

test(
  'dbt 1.x is passed on whole and is no run; its name is warned of once, counted and shown',
  async () => {
    const bridge = await serve();
    const request = olderDbtTrace();
    for (let count = 0; count < 2; count++) await post(bridge.otlpUrl, 'traces', codecs.protobuf.encode(request));
    await until('both requests', () => destination.requests.length === 2, TIMEOUT_MS);
    expect(destination.accepted('traces')).toEqual([request, request]);
    expect(bridge.traceIds()).toEqual([]);
    expect(bridge.stderr.match(/is passed on as another service/g)?.length).toBe(1);
    const metrics = await (await fetch(`${bridge.webUrl}/metrics`)).text();
    expect(metrics).toContain('run_bridge_receiver_passed_engine_items_total{signal="traces"} 10');
    expect(await pageOf(bridge, '/settings')).toContain('dbt.runner');
  },
  TIMEOUT_MS,
);

test(
  'a marked project that nobody recognises shows none of its values at a destination',
  async () => {
    const bridge = await serve();
    for (const { signal, body } of bodiesIn('test/fixture/redaction/otlp')) {
      const request = codecs.protobuf.decode(signal, body);
      const resources = request.resources.map((group) => ({
        ...group,
        resource: { ...group.resource, attributes: [{ key: 'telemetry.sdk.language', value: 'go' }] },
      }));
      await post(bridge.otlpUrl, signal, codecs.protobuf.encode({ ...request, resources } as typeof request));
    }
    const count = bodiesIn('test/fixture/redaction/otlp').length;
    await until('all of it', () => destination.requests.length >= count, TIMEOUT_MS);
    expect(bridge.traceIds()).toEqual([]);
    const stored = join(bridge.dataFolder, 'foreign', '00000001.otlp.jsonl');
    expect(readFileSync(stored, 'utf8')).toMatch(/zq[a-z]+\d{3}/i);
    for (const request of [...destination.accepted('traces'), ...destination.accepted('logs')]) {
      expect(Buffer.from(codecs.json.encode(request)).toString('utf8')).not.toMatch(/zq[a-z]+\d{3}|7700\d{5}/i);
    }
  },
  TIMEOUT_MS,
);

test(
  'OTLP JSON lines of the engine under new names are imported as a run',
  async () => {
    const lines = sampleBodies(RUN).map(({ signal, body }) =>
      Buffer.from(
        codecs.json.encode(codecs.protobuf.decode(signal, renamed(signal, body, { service: 'melange', scope: 'm' }))),
      ).toString('utf8'),
    );
    writeFileSync(join(dir, 'run.otlp.jsonl'), `${lines.join('\n')}\n`);
    const env = { PATH: process.env.PATH ?? '', HOME: dir, RUN_BRIDGE_DATA_DIR: join(dir, 'data') };
    const { exitCode, stderr } = await runBridge(['import', 'run.otlp.jsonl'], { cwd: dir, env });
    expect(exitCode, stderr).toBe(0);
    expect(traceIdsIn(join(dir, 'data'))).toEqual([TRACE]);
    expect(stderr).toContain('under a name that is not known');
  },
  TIMEOUT_MS,
);
