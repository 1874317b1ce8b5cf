import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { z } from 'zod';
import { BridgeProcess } from '../tool/bridge-process.js';
import { sampleCommand } from '../tool/sample-command.js';
import { until } from '../tool/until.js';
import { runBridge } from './run-bridge.js';

const incidentSchema = z.object({
  event_action: z.string(),
  payload: z.object({ summary: z.string() }),
});
const payloadSchema = z.object({
  eventType: z.string(),
  data: z.object({ jobName: z.string(), projectName: z.string() }),
});
let bridge: BridgeProcess;
let server: Server;
let folder: string;
let bodies: { readonly path: string; readonly body: unknown }[];
let runs = 0;
beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'run-bridge-incidents-'));
  bridge = await BridgeProcess.start({ args: ['--webhook-allow', 'loopback'] });
  bodies = [];
  server = createServer(async (request, response) => {
    let text = '';
    for await (const chunk of request) text += chunk;
    bodies.push({ path: request.url ?? '', body: JSON.parse(text) });
    response.end();
  });
  await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening));
});
afterEach(async () => {
  await bridge.remove();
  server.closeAllConnections();
  server.close();
  rmSync(folder, { recursive: true, force: true });
});

const subscribe = async (path: string, rest: Record<string, unknown>) => {
  const { port } = server.address() as AddressInfo;
  const token = readFileSync(join(bridge.dataFolder, 'admin-token'), 'utf8').trim();
  const answer = await fetch(`${bridge.webUrl}/api/run-bridge/v1/webhooks`, {
    method: 'POST',
    headers: { authorization: `Token ${token}` },
    body: JSON.stringify({
      ...{ name: path, client_url: `http://127.0.0.1:${port}/${path}` },
      event_types: ['job.run.errored', 'job.run.completed'],
      ...rest,
    }),
  });
  expect(answer.status).toBe(201);
};
const subscribePager = () => subscribe('pager', { type: 'pagerduty', routing_key: '0123456789abcdef0123456789abcdef' });

const exec = async (options: readonly string[], ...command: readonly string[]) =>
  await runBridge(['exec', '--to', bridge.otlpUrl, ...options, '--', ...command], { cwd: folder });
/** Runs a sample's command. */
const engine = async (sample: string, ...options: readonly string[]) => {
  runs += 1;
  await exec(options, ...sampleCommand(sample, runs));
};
/** The job's last run, whose incident comes behind those before it. */
const failAtLast = async (...options: readonly string[]) => {
  await exec(options, 'sh', '-c', 'exit 7');
  return await until('the last incident', () => {
    const all = incidents();
    return all.some((one) => one.includes('exit code 7')) ? all : undefined;
  });
};
const incidents = () =>
  bodies
    .filter(({ path }) => path === '/pager')
    .map(({ body }) => incidentSchema.parse(body))
    .map(({ event_action, payload: { summary } }) => `${event_action} ${summary}`);

test('an incident of runs of no job is closed by a success of the command that failed, and by no other', async () => {
  await subscribePager();
  await engine('build-mixed');
  for (const sample of ['parse', 'compile', 'stale-source']) await engine(sample);
  const all = await failAtLast();
  expect(all.filter((one) => !one.startsWith('trigger '))).toEqual([]);
});

test('an incident of a job stays open while another project of that job name does well', async () => {
  await subscribePager();
  await subscribe('changes', { filters: { transitions: ['first_failure'] } });
  await engine('build-mixed', '--job', 'nightly', '--project', 'one');
  await engine('build-clean', '--job', 'nightly', '--project', 'two');
  await engine('build-mixed', '--job', 'nightly', '--project', 'two');
  const all = await failAtLast('--job', 'nightly', '--project', 'three');
  expect(all.filter((one) => !one.startsWith('trigger '))).toEqual([]);
  const projects = await until('the last first failure', () => {
    const changes = bodies.filter(({ path }) => path === '/changes');
    const found = new Set(changes.map(({ body }) => payloadSchema.parse(body).data.projectName));
    return found.has('three') ? found : undefined;
  });
  expect(projects).toEqual(new Set(['one', 'two', 'three']));
});

test('a job has recovered from what failed before it came to an engine', async () => {
  await subscribePager();
  await exec(['--job', 'nightly'], 'sh', '-c', 'exit 3');
  await engine('build-clean', '--job', 'nightly');
  const all = await failAtLast('--job', 'nightly');
  expect(all.some((one) => one.startsWith('resolve nightly'))).toBe(true);
});
