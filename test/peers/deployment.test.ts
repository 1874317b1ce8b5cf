import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { z } from 'zod';
import { freePorts } from '../crash/free-ports.js';
import { sampleTraceId } from '../fake/sample-run.js';
import { BridgeProcess } from '../tool/bridge-process.js';
import { KafkaServer } from '../tool/kafka-server.js';
import { nativePostgres } from '../tool/native-postgres.js';
import { buildPeer, PeerProcess, runPeer } from '../tool/peer-process.js';
import { PostgresServer } from '../tool/postgres-server.js';
import { S3Server } from '../tool/s3-server.js';
import { sendSample } from '../tool/send-sample.js';
import { until } from '../tool/until.js';

const DASHBOARDS = 'deploy/grafana/dashboards';
const JAEGER_PORT = 14_348;
const RUN = 'build-clean';

/** What Compose would start, as far as it is read here. */
const projectSchema = z.object({
  services: z.record(
    z.string(),
    z.object({
      command: z.array(z.string()).nullish(),
      environment: z.record(z.string(), z.string()).optional(),
      volumes: z.array(z.object({ source: z.string(), target: z.string() })).optional(),
    }),
  ),
});

const servicesOf = (...profiles: readonly string[]) =>
  projectSchema.parse(JSON.parse(runPeer('deployment', ['compose', 'docker-compose.yml', ...profiles]))).services;

beforeAll(() => {
  buildPeer('deployment');
  buildPeer('jaeger');
});

it.each([
  { profiles: [], services: ['grafana', 'jaeger', 'prometheus', 'run-bridge'] },
  { profiles: ['tempo'], services: ['grafana-tempo', 'prometheus', 'run-bridge-tempo', 'tempo'] },
  {
    profiles: ['several'],
    services: ['bucket', 'build', 'grafana', 'jaeger', 'kafka', 'postgres', 'prometheus', 'receive', 'topics', 'web'],
  },
])(
  'docker compose starts $services with the profiles $profiles, by its own reading of the file',
  ({ profiles, services }) => {
    expect(Object.keys(servicesOf(...profiles)).toSorted()).toEqual(services);
  },
);

it("dashboards are valid by Grafana's schema", () => {
  const files = readdirSync(DASHBOARDS).map((name) => join(DASHBOARDS, name));
  expect(files).toHaveLength(5);
  expect(runPeer('deployment', ['dashboard', ...files])).toBe('');
});

// There is no Docker here: what it would start in containers runs as processes, each with the command, environment and files of its
// container, and with other addresses.
describe('bridges that Compose starts', () => {
  const folder = mkdtempSync(join(tmpdir(), 'run-bridge-deployment-'));
  const ends: (() => Promise<unknown>)[] = [];
  beforeAll(async () => {
    const jaeger = await PeerProcess.start('jaeger', 'test/tool/peers/conf/jaeger.yaml', JAEGER_PORT, {
      OTLP_HTTP_PORT: String(JAEGER_PORT),
      OTLP_GRPC_PORT: '14347',
    });
    ends.push(() => jaeger.stop());
  });
  afterAll(async () => {
    for (const end of ends.toReversed()) await end();
    rmSync(folder, { recursive: true, force: true });
  });

  /** Starts a service. @param elsewhere where the hosts are that it names @param env replaces what its environment says */
  const start = async (
    name: string,
    services: ReturnType<typeof servicesOf>,
    elsewhere: Readonly<Record<string, string>> = {},
    env: Readonly<Record<string, string>> = {},
  ): Promise<BridgeProcess> => {
    const { command, environment, volumes } = services[name] ?? {};
    const [serve, ...args] = command ?? [];
    expect(serve).toBe('serve');
    const mounted = volumes?.find(({ target }) => args.includes(target));
    let text = readFileSync(mounted?.source ?? '', 'utf8');
    for (const [from, to] of Object.entries({
      'http://traces:4318': `http://127.0.0.1:${JAEGER_PORT}`,
      ...elsewhere,
    })) {
      text = text.replaceAll(from, to);
    }
    const path = join(folder, `${name}.yaml`);
    writeFileSync(path, text);
    const bridge = await BridgeProcess.start({
      args: args.map((arg) => (arg === mounted?.target ? path : arg)),
      env: { ...environment, ...env },
    });
    ends.push(() => bridge.remove());
    return bridge;
  };
  const token = ({ dataFolder }: BridgeProcess) => readFileSync(join(dataFolder, 'admin-token'), 'utf8').trim();
  /** Waits for the end of the run in the API of a bridge, and for its trace in Jaeger. */
  const seen = async (bridge: BridgeProcess) => {
    const traceId = sampleTraceId(RUN);
    const run = await until('the end of the run', async () => {
      const headers = { authorization: `Token ${token(bridge)}` };
      const answer = await fetch(`${bridge.webUrl}/api/run-bridge/v1/runs/${traceId}`, { headers });
      const { data } = (await answer.json()) as { data?: { id: number; status: string; is_complete: boolean } };
      return data?.is_complete && data;
    });
    const trace = await until('its trace', async () => {
      const response = await fetch(`http://127.0.0.1:16686/api/traces/${traceId}`);
      return response.ok && (await response.text());
    });
    return { run, trace };
  };

  it('take a run, export it with the address of its page, and are read by Prometheus without a token', async () => {
    const bridge = await start('run-bridge', servicesOf());
    expect(bridge.stderr).toContain('(run-bridge open signs in; ');
    await sendSample(bridge.otlpUrl, RUN);
    const { run, trace } = await seen(bridge);
    expect(run.status).toBe('success');
    expect(trace).toContain(`"http://127.0.0.1:4380/runs/${run.id}"`);
    const metrics = await (await fetch(`${bridge.webUrl}/metrics`)).text();
    expect(metrics).toMatch(/^run_bridge_last_run_node_seconds\{/m);
    const page = await fetch(`${bridge.webUrl}/runs/${run.id}`, {
      headers: { accept: 'text/html', authorization: `Token ${token(bridge)}` },
    });
    expect(await page.text()).toContain(`http://127.0.0.1:16686/trace/${sampleTraceId(RUN)}`);
  });

  it('do so as several processes, over Kafka, PostgreSQL and a bucket', async () => {
    const [port = 0] = await freePorts(1, 24_000);
    const postgres = await PostgresServer.start(nativePostgres());
    ends.push(() => postgres.stop());
    const s3 = await S3Server.start(port, ['run-bridge']);
    ends.push(() => s3.stop());
    const kafka = await KafkaServer.start();
    ends.push(() => kafka.remove());
    const services = servicesOf('several');
    const [, topics = '', partitions] =
      /for topic in (.+?);[\s\S]* --partitions (\d+)/.exec(services.topics?.command?.[0] ?? '') ?? [];
    await kafka.createTopics(topics.split(' '), Number(partitions));
    const elsewhere = { 'kafka:9092': kafka.broker, 'http://bucket:7070': s3.endpoint };
    const env = {
      DATABASE_URL: postgres.url(),
      RUN_BRIDGE_WEBHOOK_KEY: Buffer.alloc(32, 1).toString('base64'),
      ...{ AWS_ACCESS_KEY_ID: S3Server.accessKeyId, AWS_SECRET_ACCESS_KEY: S3Server.secretAccessKey },
      AWS_REGION: S3Server.region,
    };
    expect(Object.keys(services.build?.environment ?? {}).toSorted()).toEqual(
      Object.keys(env)
        .filter((name) => name !== 'AWS_REGION')
        .toSorted(),
    );
    const receive = await start('receive', services, elsewhere);
    const build = await start('build', services, elsewhere, env);
    const web = await start('web', services, elsewhere, env);
    await sendSample(receive.otlpUrl, RUN);
    const { run } = await seen(web);
    expect(run.status).toBe('success');
    for (const { webUrl } of [receive, build, web]) expect((await fetch(`${webUrl}/metrics`)).status).toBe(200);
  });
});
