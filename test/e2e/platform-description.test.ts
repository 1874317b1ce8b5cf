import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js';
import formats from 'ajv-formats';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { z } from 'zod';
import { DESCRIBED, differencesOf } from '../contract/platform-description.js';
import { BridgeProcess } from '../tool/bridge-process.js';
import { sendSample } from '../tool/send-sample.js';
import { until } from '../tool/until.js';

// A bridge that is filled with real runs and deliveries, each of whose answers is held to what the platform publishes of its API, and to what
// the bridge says of its own.

const CONFIGURATION = `jobs:
  broken: { command: [[sh, -c, "exit 3"], [touch, never]], target: prod }
  slow: { command: [[sh, -c, "sleep 60"]], timeout: 30m }
`;
const RUNS = ['build-mixed', 'build-clean', 'interrupted'];
const found = new Set<string>();
const asked = new Set<string>();
let bridge: BridgeProcess;
let folder: string;
let token: string;
let receiver: Server;
/** Checks an answer as the bridge's own description has it, by its request without the names of its parts. */
let own: ReadonlyMap<string, ValidateFunction>;
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'run-bridge-description-'));
  writeFileSync(join(folder, 'run-bridge.yaml'), CONFIGURATION);
  receiver = createServer((request, response) => {
    request.resume().once('end', () => response.end('ok'));
  });
  await new Promise<void>((resolve) => receiver.listen(0, '127.0.0.1', resolve));
  const args = ['--config', join(folder, 'run-bridge.yaml'), '--webhook-allow', 'loopback'];
  bridge = await BridgeProcess.start({ args });
  token = readFileSync(join(bridge.dataFolder, 'admin-token'), 'utf8').trim();
  own = await ownDescription(bridge.webUrl);
});
afterAll(async () => {
  await bridge.remove();
  receiver.closeAllConnections();
  receiver.close();
  rmSync(folder, { recursive: true, force: true });
});

const idSchema = z.object({ data: z.looseObject({ id: z.union([z.string(), z.number()]) }) });
const idsSchema = z.object({ data: z.array(z.looseObject({ id: z.union([z.string(), z.number()]) })) });
const statusSchema = z.object({
  data: z.looseObject({ status: z.number(), run_steps: z.array(z.object({ id: z.number() }).loose()) }),
});

/** Sends a request, and notes how its answer differs from the description. @param route as it stands there @param ids in their order */
async function ask(route: string, ids: readonly (string | number)[] = [], query = '', body?: object): Promise<unknown> {
  const shape = DESCRIBED[route];
  if (shape === undefined) throw new Error(`not described: ${route}`);
  const [method = '', path = ''] = route.split(' ');
  const left = [...ids];
  const at = path.replace('{a}', '10001').replaceAll('{id}', () => String(left.shift()));
  const answer = await fetch(`${bridge.webUrl}${at}/${query}`, {
    method,
    headers: { authorization: `Token ${token}` },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  const json: unknown = await answer.json();
  expect([route, answer.status < 300, answer.status < 300 ? '' : json]).toEqual([route, true, '']);
  asked.add(route);
  for (const one of differencesOf(json, shape, 'answer')) found.add(one);
  const validate = own.get(unnamed(route));
  expect([route, validate?.(json), validate?.errors ?? null]).toEqual([route, true, null]);
  return json;
}
const V2 = '/api/v2/accounts/{a}';
const V3 = '/api/v3/accounts/{a}';
const HOOK = `${V3}/webhooks`;
const idOf = (answer: unknown) => idSchema.parse(answer).data.id;
const idsOf = (answer: unknown) => idsSchema.parse(answer).data.map(({ id }) => id);
const RELATED = '?include_related=["trigger","job","environment","run_steps","debug_logs"]';
const runIn = async (id: string | number) => statusSchema.parse(await ask(`GET ${V2}/runs/{id}`, [id], RELATED)).data;
const until10 = (id: string | number) =>
  until(`the end of run ${id}`, async () => ((await runIn(id)).status >= 10 ? true : undefined));

test('answers are as the published description has them, but for the differences that are listed', async () => {
  const { port } = z.object({ port: z.number() }).parse(receiver.address());
  const url = `http://127.0.0.1:${port}/`;
  const event_types = ['job.run.started', 'job.run.errored', 'job.run.completed'];
  const made = await ask(`POST ${HOOK}/subscriptions`, [], '', { name: 'good', client_url: url, event_types });
  const hook = idOf(made);
  const closed = { name: 'closed', client_url: 'http://127.0.0.1:1/', event_types };
  const unreached = idOf(await ask(`POST ${HOOK}/subscriptions`, [], '', closed));
  const jobs = new Map(
    z
      .object({ data: z.array(z.looseObject({ id: z.number(), name: z.string() })) })
      .parse(await ask(`GET ${V2}/jobs`))
      .data.map(({ name, id }) => [name, id]),
  );
  const jobId = (name: string) => jobs.get(name) ?? 0;
  // Before anything happens: an event that it is not meant for would be shown as filtered.
  await ask(`PUT ${HOOK}/subscription/{id}`, [hook], '', { job_ids: [jobId('broken')] });
  await ask(`PUT ${HOOK}/subscription/{id}`, [hook], '', { job_ids: [] });
  for (const sample of RUNS) await sendSample(bridge.otlpUrl, sample);
  const sent = await until('the runs', async () => {
    const ids = idsOf(await ask(`GET ${V2}/runs`));
    return ids.length === RUNS.length && ids;
  });
  for (const id of sent) await until10(id);

  const broken = idOf(await ask(`POST ${V2}/jobs/{id}/run`, [jobId('broken')], '', { cause: 'a test' }));
  await until10(broken);
  await ask(`GET ${V2}/runs/{id}/retry`, [broken]);
  await until10(idOf(await ask(`POST ${V2}/runs/{id}/retry`, [broken])));
  await until10(idOf(await ask(`POST ${V2}/jobs/{id}/rerun`, [jobId('broken')])));
  const slow = idOf(await ask(`POST ${V2}/jobs/{id}/run`, [jobId('slow')], '', { cause: 'a test' }));
  await until('its step', async () => (await runIn(slow)).run_steps.length > 0 || undefined);
  await ask(`POST ${V2}/runs/{id}/cancel`, [slow]);
  await until10(slow);

  await ask(`GET ${V2.replace('/{a}', '')}`);
  await ask(`GET ${V2}`);
  await ask(`GET ${V2}/runs`, [], RELATED);
  await ask(`GET ${V2}/runs`, [], '?limit=2&offset=1&order_by=-id&status__in=[10,20]');
  for (const { id } of (await runIn(sent[0] ?? 0)).run_steps) await ask(`GET ${V2}/steps/{id}`, [id]);
  for (const id of [...sent, slow]) await ask(`GET ${V2}/runs/{id}/artifacts`, [id]);
  for (const id of jobs.values()) await ask(`GET ${V2}/jobs/{id}`, [id]);

  await ask(`GET ${V2}/jobs`, [], '?include_related=["environment","most_recent_run","most_recent_completed_run"]');

  for (const id of idsOf(await ask(`GET ${V2}/projects`))) await ask(`GET ${V2}/projects/{id}`, [id]);
  for (const id of idsOf(await ask(`GET ${V2}/environments`))) await ask(`GET ${V2}/environments/{id}`, [id]);
  for (const project of idsOf(await ask(`GET ${V3}/projects`))) {
    await ask(`GET ${V3}/projects/{id}`, [project]);
    const at = `GET ${V3}/projects/{id}/environments`;
    for (const id of idsOf(await ask(at, [project], '?include_related=project'))) {
      await ask(`${at}/{id}`, [project, id]);
    }
  }

  await ask(`GET ${HOOK}/subscription/{id}/test`, [hook]);
  await until('a delivery that was answered, and one that was not', async () => {
    for (const id of [hook, unreached]) {
      const events = idsOf(await ask(`GET ${HOOK}/subscription/{id}/events`, [id]));
      const receipts = [];
      for (const event of events) {
        await ask(`GET ${HOOK}/event/{id}`, [event]);
        receipts.push(...idsOf(await ask(`GET ${HOOK}/subscription/{id}/event/{id}/receipt`, [id, event])));
        await ask(`GET ${HOOK}/event/{id}/receipts`, [event]);
      }
      for (const receipt of receipts) await ask(`GET ${HOOK}/receipt/{id}`, [receipt]);
      if (receipts.length === 0) return undefined;
    }
    return true;
  });
  await ask(`GET ${HOOK}/subscriptions`);
  await ask(`GET ${HOOK}/subscription/{id}`, [unreached]);
  await ask(`DELETE ${HOOK}/subscription/{id}`, [unreached]);

  expect([...found].sort()).toEqual(documentedDifferences());
  expect([...asked].sort()).toEqual(Object.keys(DESCRIBED).sort());
});

const ownSchema = z.looseObject({
  paths: z.record(z.string(), z.record(z.string(), z.looseObject({ responses: z.record(z.string(), z.unknown()) }))),
});

/** A request whatever its parts are called: `GET /api/v2/accounts/{}/runs`. */
function unnamed(route: string): string {
  return route.replaceAll(/\{\w+\}/g, '{}');
}

async function ownDescription(webUrl: string): Promise<ReadonlyMap<string, ValidateFunction>> {
  const document = ownSchema.parse(await (await fetch(`${webUrl}/api/openapi.json`)).json());
  const ajv = new Ajv2020({ strict: false });
  formats.default(ajv);
  ajv.addSchema(document, 'api');
  const found = new Map<string, ValidateFunction>();
  for (const [path, methods] of Object.entries(document.paths)) {
    for (const [method, { responses }] of Object.entries(methods)) {
      const status = ['200', '201'].find((one) => one in responses);
      if (status === undefined) continue;
      const pointer = [path, method, 'responses', status, 'content', 'application/json', 'schema']
        .map((part) => encodeURIComponent(part.replaceAll('~', '~0').replaceAll('/', '~1')))
        .join('/');
      const route = `${method.toUpperCase()} ${unnamed(path)}`;
      if (route in DESCRIBED_UNNAMED) found.set(route, ajv.compile({ $ref: `api#/paths/${pointer}` }));
    }
  }
  return found;
}

const DESCRIBED_UNNAMED = Object.fromEntries(Object.keys(DESCRIBED).map((route) => [unnamed(route), true]));

const PHRASES: Readonly<Record<string, string>> = {
  null: 'is null',
  'left out': 'is left out',
  added: 'is beyond the description',
  'a text': 'is no integer',
  texts: 'is no integer',
};

/** The table of differences in the documentation, as `differencesOf` says them. */
function documentedDifferences(): readonly string[] {
  const [, section = ''] = readFileSync('docs/reference/api.md', 'utf8').split(
    '### Differences from the published description',
  );
  const rows = section.split('\n## ')[0]?.matchAll(/^\| (`.*) \| ([a-z ]+) \| .* \|$/gm) ?? [];
  const names = [...rows].flatMap(([, groups = '', kind = '']) =>
    groups.split('; ').flatMap((group) => {
      const [, shape, fields = ''] = /^`(.*)`: (.*)$/.exec(group) ?? [];
      return fields.split(', ').map((field) => `${shape}.${field} ${PHRASES[kind]}`);
    }),
  );
  return names.sort();
}
