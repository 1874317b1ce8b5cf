import { mkdtempSync, readFileSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, expect, test } from 'vitest';
import { BridgeProcess } from '../tool/bridge-process.js';
import { ParsedMetrics } from '../tool/parsed-metrics.js';
import { sendSample } from '../tool/send-sample.js';
import { subscribe } from '../tool/subscribe.js';
import { until } from '../tool/until.js';

const RUN = 'build-clean';
const sample = readFileSync(new URL(`../fixture/samples/${RUN}/otel.jsonl`, import.meta.url), 'utf8');
const spanCount = sample.split('\n').filter((line) => line.includes('"record_type":"SpanEnd"')).length;
const logCount = sample.split('\n').filter((line) => line.includes('"record_type":"LogRecord"')).length;

const sent = 'run_bridge_destination_sent_items_total';
const failed = 'run_bridge_destination_failed_attempts_total';

let bridge: BridgeProcess | undefined;
let receiver: Server | undefined;
afterEach(async () => {
  await bridge?.remove();
  receiver?.closeAllConnections();
  receiver?.close();
});

async function serve(options: Parameters<typeof BridgeProcess.start>[0] = {}): Promise<BridgeProcess> {
  bridge = await BridgeProcess.start(options);
  return bridge;
}

async function scrape({ webUrl }: BridgeProcess): Promise<ParsedMetrics> {
  const answer = await fetch(`${webUrl}/metrics`);
  expect(answer.status).toBe(200);
  return new ParsedMetrics(await answer.text());
}

/** A receiver of webhooks that answers everything alike. */
async function answering(status: number): Promise<string> {
  receiver = createServer((request, response) => {
    request.resume().on('end', () => response.writeHead(status).end());
  });
  await new Promise<void>((resolve) => receiver?.listen(0, '127.0.0.1', resolve));
  const address = receiver.address();
  return `http://127.0.0.1:${typeof address === 'object' ? address?.port : 0}/`;
}

const adminToken = ({ dataFolder }: BridgeProcess) => readFileSync(join(dataFolder, 'admin-token'), 'utf8').trim();

test('a program that does nothing says that it is ready, of every part that /readyz knows', async () => {
  const started = await serve();
  const metrics = await scrape(started);
  const verbose = await (await fetch(`${started.webUrl}/readyz?verbose`)).text();
  const checks: readonly string[] = JSON.parse(verbose).checks.map(({ name }: { readonly name: string }) => name);
  expect(metrics.labelsWith('run_bridge_check_ready', 1).map(({ check }) => check)).toEqual(checks);
  expect(metrics.value('run_bridge_ready')).toBe(1);
  expect(metrics.labelsWith('run_bridge_source_up', 0)).toEqual([]);
  expect(metrics.value('run_bridge_open_runs')).toBe(0);
  expect(metrics.value('run_bridge_memory_resident_bytes')).toBeGreaterThan(30e6);
  expect(metrics.value('run_bridge_memory_limit_bytes')).toBeGreaterThan(100e6);
  expect(metrics.value('run_bridge_disk_free_bytes')).toBeGreaterThan(
    metrics.value('run_bridge_disk_reserve_bytes') ?? 0,
  );
  expect(metrics.value('run_bridge_connections', { port: 'web' })).toBeGreaterThan(0);
});

test('what comes in is counted by its items, and what is refused by the reason', async () => {
  const started = await serve();
  await sendSample(started.otlpUrl, RUN);
  await fetch(`${started.otlpUrl}/v1/traces`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: '{',
  });
  const metrics = await scrape(started);
  const accepted = 'run_bridge_receiver_accepted_items_total';
  expect(metrics.value(accepted, { signal: 'traces' })).toBe(spanCount);
  expect(metrics.value(accepted, { signal: 'logs' })).toBe(logCount);
  expect(metrics.value('run_bridge_receiver_accepted_bytes_total', { signal: 'traces' })).toBeGreaterThan(10_000);
  expect(metrics.value('run_bridge_receiver_refused_requests_total', { reason: 'malformed' })).toBe(1);
  expect(metrics.value('run_bridge_receiver_in_flight_bytes')).toBe(0);
});

test('a destination that is down lags behind, and one that takes everything does not', async () => {
  const next = await BridgeProcess.start();
  try {
    const dataFolder = mkdtempSync(join(tmpdir(), 'run-bridge-data-'));
    const config = join(dataFolder, 'run-bridge.yaml');
    const destinations = { down: { endpoint: 'http://127.0.0.1:9' }, up: { endpoint: next.otlpUrl } };
    writeFileSync(config, JSON.stringify({ destinations }));
    const started = await serve({ dataFolder, args: ['--config', config] });
    await sendSample(started.otlpUrl, RUN);
    const metrics = await until('the end of the export', async () => {
      const now = await scrape(started);
      const isUp = now.value(sent, { destination: 'up', signal: 'traces' }) === spanCount;
      const hasFailed = (now.value(failed, { destination: 'down', signal: 'traces' }) ?? 0) > 0;
      return isUp && hasFailed && now;
    });
    expect(metrics.value('run_bridge_destination_lag_bytes', { destination: 'down' })).toBeGreaterThan(10_000);
    expect(metrics.value('run_bridge_destination_oldest_unsent_age_seconds', { destination: 'down' })).toBeGreaterThan(
      0,
    );
    expect(metrics.value(sent, { destination: 'down', signal: 'traces' })).toBe(0);
    expect(metrics.value('run_bridge_destination_pending_runs', { destination: 'down' })).toBe(1);
    expect(metrics.value('run_bridge_ready')).toBe(1);
  } finally {
    await next.remove();
  }
});

test('an endpoint that wants nothing more is archived, and a metric says so with the reason', async () => {
  const started = await serve({ args: ['--webhook-allow', 'loopback'] });
  const { id } = await subscribe(started, adminToken(started), 'pager', await answering(410));
  await sendSample(started.otlpUrl, RUN);
  const subscription = { account: '10001', subscription: id };
  const metrics = await until('the archiving', async () => {
    const now = await scrape(started);
    return now.value('run_bridge_webhook_subscriptions', { state: 'archived' }) === 1 && now;
  });
  expect(metrics.labelsWith('run_bridge_webhook_subscription_state', 1)).toEqual([
    { ...subscription, name: 'pager', kind: 'http', state: 'archived', reason: 'gone' },
  ]);
  expect(metrics.value('run_bridge_webhook_archivings_total', { reason: 'gone' })).toBe(1);
  expect(metrics.value('run_bridge_webhook_attempts_total', { ...subscription, outcome: 'failed' })).toBeGreaterThan(0);
});

const RUNS = 'cicd_pipeline_run_duration_seconds_count';
const NODES = 'run_bridge_last_run_nodes';

test('runs are counted by job and result, and stay counted after a restart and when they are deleted', async () => {
  const started = await serve({ args: ['--node-metrics', '2'] });
  const counts = async (isDone: (metrics: ParsedMetrics) => boolean) =>
    until('the metrics of runs', async () => {
      const now = await scrape(bridge ?? started);
      return isDone(now) && now;
    });
  await sendSample(started.otlpUrl, RUN);
  await sendSample(started.otlpUrl, 'fail-fast');
  const before = await counts(
    (now) => [...now.text.matchAll(/^cicd_pipeline_run_duration_seconds_count/gm)].length === 2,
  );
  const job = { account: '10001', project: 'default', environment: 'default', cicd_pipeline_name: 'adhoc' };
  const last = 'run_bridge_run_last_end_timestamp_seconds';
  const began = before.value('run_bridge_run_last_start_timestamp_seconds') ?? Number.NaN;
  for (const cicd_pipeline_result of ['success', 'failure']) {
    expect(before.value(RUNS, { ...job, cicd_pipeline_result })).toBe(1);
    const ended = before.value(last, { ...job, cicd_pipeline_result }) ?? Number.NaN;
    expect(Math.abs(ended - began)).toBeLessThan(3_600);
  }
  expect(before.value('cicd_pipeline_run_errors_total', { ...job, error_type: '_OTHER' })).toBe(1);
  expect(before.value('cicd_pipeline_run_active', { cicd_pipeline_run_state: 'executing' })).toBe(0);
  expect(before.value('run_bridge_left_out_jobs')).toBe(0);
  // As the engine's own summary of the run has it.
  expect(before.value(NODES, { type: 'unit_test', outcome: 'failed' })).toBe(1);
  expect(before.value('run_bridge_last_run_failing_rows')).toBeGreaterThan(0);
  expect(before.labelsWith(NODES, 0)).toEqual([]);
  const ofNodes = before.families.find(({ name }) => name === 'run_bridge_last_run_node_seconds')?.metrics ?? [];
  expect(ofNodes).toHaveLength(2);

  const lines = (metrics: ParsedMetrics) =>
    metrics.text.split('\n').filter((line) => /^cicd_pipeline_run_(?:duration|errors)/.test(line));
  await started.stop();
  const { dataFolder } = started;
  const again = await serve({ dataFolder, args: ['--node-metrics', '2'] });
  expect(lines(await scrape(again))).toEqual(lines(before));
  const runs = await fetch(`${again.webUrl}/api/v2/accounts/10001/runs/`, {
    headers: { authorization: `Token ${adminToken(again)}` },
  });
  const { data } = (await runs.json()) as { readonly data: readonly { readonly id: number }[] };
  expect(data).toHaveLength(2);
  const idOf = (metrics: ParsedMetrics, cicd_pipeline_result: string) =>
    metrics.value('run_bridge_run_last_id', { ...job, cicd_pipeline_result });
  expect([idOf(before, 'success'), idOf(before, 'failure')].toSorted()).toEqual(data.map(({ id }) => id).toSorted());
  for (const { id } of data) {
    const removed = await fetch(`${again.webUrl}/api/run-bridge/v1/runs/${id}`, {
      method: 'DELETE',
      headers: { authorization: `Bearer ${adminToken(again)}` },
    });
    expect(removed.status).toBe(200);
  }
  const after = await scrape(again);
  expect(lines(after)).toEqual(lines(before));
  expect(after.value(NODES, { type: 'unit_test', outcome: 'failed' })).toBeUndefined();
  expect(idOf(after, 'failure')).toBeUndefined();
});

test('metrics of runs are pushed to each destination that takes them, and a receiver without metrics is asked once', async () => {
  const asked: string[] = [];
  const answer = (path: string) => (path.startsWith('/deaf/v1/metrics') ? 404 : path.startsWith('/full/') ? 503 : 200);
  receiver = createServer((request, response) => {
    asked.push(request.url ?? '');
    request.resume().on('end', () => response.writeHead(answer(request.url ?? '')).end());
  });
  await new Promise<void>((resolve) => receiver?.listen(0, '127.0.0.1', resolve));
  const address = receiver.address();
  const url = `http://127.0.0.1:${typeof address === 'object' ? address?.port : 0}`;
  const dataFolder = mkdtempSync(join(tmpdir(), 'run-bridge-data-'));
  const config = join(dataFolder, 'run-bridge.yaml');
  const destinations = {
    takes: { endpoint: `${url}/takes` },
    full: { endpoint: `${url}/full` },
    deaf: { endpoint: `${url}/deaf` },
    none: { endpoint: `${url}/none`, metrics: 'off' },
  };
  writeFileSync(config, JSON.stringify({ destinations }));
  const started = await serve({ dataFolder, args: ['--config', config], env: { OTEL_METRIC_EXPORT_INTERVAL: '100' } });
  const count = (path: string) => asked.filter((one) => one === path).length;
  await until('a few pushes', () => count('/takes/v1/metrics') >= 3 && count('/full/v1/metrics') >= 3);
  expect(count('/deaf/v1/metrics')).toBe(1);
  expect(count('/none/v1/metrics')).toBe(0);
  expect(await started.stop()).toBe(0);
  expect(started.stderr.split('\n').filter((line) => line.includes('failed to push metrics'))).toHaveLength(1);
  expect(started.stderr).toContain('the destination takes no metrics');
});

test('where tokens are asked for, a scraper needs one', async () => {
  const started = await serve({ args: ['--otlp-auth', 'token'] });
  const ask = async (headers: Readonly<Record<string, string>>) =>
    (await fetch(`${started.webUrl}/metrics`, { headers })).status;
  expect(await ask({})).toBe(401);
  expect(await ask({ authorization: 'Bearer nothing' })).toBe(401);
  expect(await ask({ authorization: `Bearer ${adminToken(started)}` })).toBe(200);
});
