import { mkdtempSync, readdirSync, readFileSync, readlinkSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { z } from 'zod';
import { runBridge } from '../e2e/run-bridge.js';
import { BridgeCluster } from '../tool/bridge-cluster.js';
import { BridgeProcess } from '../tool/bridge-process.js';
import { FetchingReceiver } from '../tool/fetching-receiver.js';
import { SentRun } from '../tool/sent-run.js';
import { until } from '../tool/until.js';

const [RECEIVE, BUILD, WEB] = [0, 1, 2];
const PARQUET = 'metadata/telemetry-1-otel.parquet';
const ENGINE = new URL('../tool/stand-in-engine.mjs', import.meta.url).pathname;
const SAMPLE = new URL('../fixture/samples/build-mixed', import.meta.url).pathname;

const runSchema = z.object({
  data: z.looseObject({
    id: z.number(),
    status: z.string(),
    is_complete: z.boolean(),
    job: z.looseObject({ name: z.string() }),
    steps: z.array(
      z.looseObject({
        artifacts: z.unknown(),
        commands: z.array(z.looseObject({ verdict: z.string().nullable(), has_parquet: z.boolean() })),
      }),
    ),
  }),
});

const jobsSchema = z.object({ data: z.array(z.looseObject({ id: z.number(), name: z.string() })) });
const queuedSchema = z.object({ data: z.looseObject({ id: z.number() }) });

/** Of the sample that is sent. */
const SPAN_COUNT = 112;
const SUCCEEDED = { status: 'success', steps: [{ commands: [{ verdict: 'success', has_parquet: true }] }] };

describe('a process of each role', () => {
  let cluster: BridgeCluster;
  let destination: BridgeProcess;
  let folder: string;
  beforeAll(async () => {
    destination = await BridgeProcess.start();
    folder = mkdtempSync(join(tmpdir(), 'run-bridge-roles-'));
    const job = [
      'jobs:',
      '  hourly:',
      '    command:',
      `      - [${JSON.stringify(process.execPath)}, -e, "console.log(1)"]`,
    ];
    const exports = ['destinations:', '  elsewhere:', `    endpoint: ${destination.otlpUrl}`];
    cluster = await BridgeCluster.start(
      ['receive', 'build', 'web'],
      ['--webhook-allow', 'loopback'],
      [...job, ...exports],
    );
  });
  afterAll(async () => {
    await cluster?.remove();
    await destination?.remove();
    rmSync(folder, { recursive: true, force: true });
  });

  const ask = (path: string, headers: Readonly<Record<string, string>> = {}, init: RequestInit = {}) =>
    fetch(`${cluster.bridge(WEB).webUrl}${path}`, {
      ...init,
      headers: { authorization: `Token ${cluster.token}`, ...headers },
    });
  const finished = (traceId: string) =>
    until(
      'the end of the run',
      async () => {
        const answer = await ask(`/api/run-bridge/v1/runs/${traceId}`);
        if (answer.status === 404) return undefined;
        const { data } = runSchema.parse(await answer.json());
        return data.is_complete ? data : undefined;
      },
      40_000,
    );
  const logOf = async (traceId: string) => {
    const events = await (await ask(`/api/run-bridge/v1/runs/${traceId}/events`)).text();
    return events
      .split('\n')
      .flatMap((line) => (line.startsWith('data: {"record_type"') ? [line.slice(6)] : []))
      .join('\n');
  };

  it('takes, builds and answers: a run has its page, its files and its webhooks where nothing of it was built', async () => {
    const told = await FetchingReceiver.open(cluster.bridge(WEB), cluster.token);
    const sent = new SentRun();
    for (const { status } of await sent.send(cluster.bridge(RECEIVE).otlpUrl)) expect(status).toBe(200);
    const run = await finished(sent.traceId);
    expect(run).toMatchObject(SUCCEEDED);
    expect(sent.compareLines(await logOf(sent.traceId))).toEqual({ missingCount: 0, addedCount: 0 });
    const page = await ask(`/runs/${run.id}`, { accept: 'text/html', cookie: `run_bridge_token=${cluster.token}` });
    expect([page.status, await page.text()]).toEqual([200, expect.stringContaining('Succeeded in 462 ms')]);
    const parquet = await ask(`/api/v2/accounts/10001/runs/${run.id}/artifacts/${PARQUET}?step=1`);
    expect(Buffer.from(await parquet.arrayBuffer()).toString('latin1')).toMatch(/^PAR1[\s\S]*PAR1$/);
    await until('both webhooks', () => told.deliveries.length >= 2);
    await told.close();
    expect(told.deliveries.map(({ eventType, isSigned }) => [eventType, isSigned])).toEqual([
      ['job.run.started', true],
      ['job.run.completed', true],
    ]);
    expect(told.deliveries[1]?.artifacts[PARQUET]).toBeGreaterThan(10_000);
  });

  it('exports from the builder, which the settings page of the web process says', async () => {
    await until('the export', async () => {
      const metrics = await (await fetch(`${destination.webUrl}/metrics`)).text();
      return metrics.includes(`run_bridge_receiver_accepted_items_total{signal="traces"} ${SPAN_COUNT}\n`);
    });
    const page = await ask('/settings', { accept: 'text/html', cookie: `run_bridge_token=${cluster.token}` });
    expect(await page.text()).toMatch(
      /Runs go to <span class="strong">elsewhere<\/span> from the processes that build/,
    );
    expect(cluster.bridge(BUILD).stderr).toMatch(/^exports {3}elsewhere \(http/m);
    expect(cluster.bridge(WEB).stderr).not.toMatch(/^exports/m);
  });

  it('has partitions in the builder alone, which answers for itself and for no run', async () => {
    expect(await cluster.partitionCounts()).toEqual([0, 6, 0]);
    const builder = cluster.bridge(BUILD);
    const status = async (path: string, init: RequestInit = {}) =>
      (await fetch(`${builder.webUrl}${path}`, { headers: { authorization: `Token ${cluster.token}` }, ...init }))
        .status;
    expect(await status('/readyz')).toBe(200);
    for (const path of ['/api/run-bridge/v1/runs/1001', '/api/v2/accounts/10001/runs/', '/runs/1001', '/sign-in']) {
      expect([path, await status(path)]).toEqual([path, 404]);
    }
    for (const path of ['/v1/traces', '/hooks/platform']) {
      expect([path, await status(path, { method: 'POST' })]).toEqual([path, 404]);
    }
    expect(await (await fetch(builder.webUrl)).text()).toMatch(/^run-bridge builds runs here of what Kafka has/);
    expect(listeningPorts(builder)).toEqual([Number(new URL(builder.webUrl).port)]);
    expect(builder.stderr).toMatch(/^builds {4}runs of topics otlp_spans and otlp_logs of Kafka at /m);
    expect(builder.stderr).toMatch(/^writes {4}s3:\/\/bridge\/runs \(JSONL and Parquet\)$/m);
  });

  it('says in figures what each of them does', async () => {
    const metrics = async (index: number) => (await fetch(`${cluster.bridge(index).webUrl}/metrics`)).text();
    // Each is taken at its own pace.
    const samples = [
      'run_bridge_builder_oldest_uncommitted_age_seconds 0',
      'run_bridge_kafka_state{reader="journal",state="reading"} 1',
      'run_bridge_kafka_lag_messages{reader="journal",topic="otlp_spans"} 0',
      'run_bridge_journal_state{state="writing"} 1',
      'run_bridge_builder_partitions 6',
      'run_bridge_builder_unstored_bytes 0',
      'run_bridge_kafka_lag_messages{reader="journal",topic="otlp_logs"} 0',
    ];
    const built = await until(samples.join(), async () => {
      const text = await metrics(BUILD);
      return samples.every((sample) => text.includes(`${sample}\n`)) && text;
    });
    expect(built).toMatch(/^run_bridge_kafka_accepted_messages_total\{reader="journal",topic="otlp_spans"\} [1-9]/m);
    const answering = await metrics(WEB);
    expect(answering).toContain('run_bridge_journal_state{state="writing"} 1\n');
    expect(answering).not.toMatch(/run_bridge_(kafka|builder)_/);
    expect(await metrics(RECEIVE)).toMatch(/run_bridge_journal_written_messages_total\{topic="otlp_spans"\} [1-9]/);
  });

  it('loses nothing of what a web process took that is killed', async () => {
    const sent = new SentRun();
    const half = Math.floor(sent.bodies.length / 2);
    let count = 0;
    const statuses = [];
    for (const body of sent.bodies) {
      if (count === half) {
        await cluster.bridge(WEB).stop('SIGKILL');
        await cluster.restart(WEB);
      }
      count += 1;
      statuses.push((await sent.sendOne(cluster.bridge(WEB).otlpUrl, body)).status);
    }
    expect(new Set(statuses)).toEqual(new Set([200]));
    expect(await finished(sent.traceId)).toMatchObject(SUCCEEDED);
    expect(sent.compareLines(await logOf(sent.traceId))).toEqual({ missingCount: 0, addedCount: 0 });
    expect(await cluster.partitionCounts()).toEqual([0, 6, 0]);
  });

  it('takes steps, telemetry and artifacts of exec at the one address of the web process', async () => {
    const script = `mkdir -p target; echo 'name: shop' > dbt_project.yml
      '${process.execPath}' '${ENGINE}' '${SAMPLE}' --now --no-otlp; echo '{}' > target/manifest.json`;
    const to = ['--to', cluster.bridge(WEB).otlpUrl, '--job', 'nightly', '--step-id', 'nightly-1'];
    const { exitCode, stderr } = await runBridge(['exec', ...to, '--', 'sh', '-c', script], { cwd: folder });
    expect([exitCode, stderr]).toEqual([0, '']);
    const [, traceId = ''] = /"trace_id":"([0-9a-f]{32})"/.exec(readFileSync(join(SAMPLE, 'otel.jsonl'), 'utf8')) ?? [];
    const run = await finished(traceId);
    expect(run).toMatchObject({
      job: { name: 'nightly' },
      steps: [{ artifacts: null, commands: [{ has_parquet: true }] }],
    });
    expect(run.steps).toHaveLength(1);
    const artifact = await ask(`/api/v2/accounts/10001/runs/${run.id}/artifacts/manifest.json`);
    expect(artifact.status).toBe(200);
  });

  it('runs jobs in the web process', async () => {
    const { data: jobs } = jobsSchema.parse(await (await ask('/api/v2/accounts/10001/jobs/?name=hourly')).json());
    const job = jobs.find(({ name }) => name === 'hourly');
    const path = `/api/v2/accounts/10001/jobs/${job?.id}/run/`;
    const queued = await ask(path, {}, { method: 'POST', body: '{"cause":"a test"}' });
    const { data } = queuedSchema.parse(await queued.json());
    const run = await until('the end of the job', async () => {
      const answer = runSchema.parse(await (await ask(`/api/run-bridge/v1/runs/${data.id}`)).json());
      return answer.data.is_complete ? answer.data : undefined;
    });
    expect(run).toMatchObject({ status: 'success', job: { name: 'hourly' } });
  });
});

/** The TCP ports that a process listens on (proc_pid_net(5)). */
function listeningPorts({ child }: BridgeProcess): readonly number[] {
  const process = `/proc/${child.pid}`;
  const sockets = readdirSync(`${process}/fd`).flatMap((name) => {
    const [, inode] = /^socket:\[(\d+)\]$/.exec(readlinkSync(join(process, 'fd', name))) ?? [];
    return inode === undefined ? [] : [inode];
  });
  const lines = ['tcp', 'tcp6'].flatMap((name) => readFileSync(`${process}/net/${name}`, 'utf8').split('\n').slice(1));
  return lines.flatMap((line) => {
    const [, local = '', , state, , , , , , inode = ''] = line.trim().split(/\s+/);
    return state === '0A' && sockets.includes(inode) ? [Number.parseInt(local.split(':')[1] ?? '', 16)] : [];
  });
}
