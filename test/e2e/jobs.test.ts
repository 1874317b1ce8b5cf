import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { hashOf } from '../../src/api/authenticator.js';
import { FIRST_ACCOUNT_ID } from '../../src/storage/account-store.js';
import { openSqliteState } from '../../src/storage/sqlite-state.js';
import { BridgeProcess } from '../tool/bridge-process.js';
import { until } from '../tool/until.js';

const TOKEN = 'rbt_a-test';
const READER = 'rbt_a-reader';
let folder: string;
let bridge: BridgeProcess;
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'run-bridge-jobs-'));
  writeFileSync(
    join(folder, 'run-bridge.yaml'),
    `jobs:
  quick: { command: ["sh -c 'echo $COLOUR > out'", [touch, done]], env: { COLOUR: green } }
  slow: { command: [[sh, -c, "echo under way; sleep 60"], [touch, never]] }
  broken: { command: [[sh, -c, "exit 3"]] }
  named: {}
  open: { command: [[./engine/dbt, build, --target, prod, --profiles-dir=conf, --full-refresh], [touch, own-step]], steps-override: true }
`,
  );
  // What stands for the engine writes down its arguments, and fails where these name what is not mended.
  mkdirSync(join(folder, 'engine'));
  const engine = `#!/bin/sh\nfor word; do printf '<%s>' "$word"; done >> steps; echo >> steps\ncase "$*" in *bad*) test -e mended;; esac\n`;
  writeFileSync(join(folder, 'engine', 'dbt'), engine, { mode: 0o755 });
  const state = await openSqliteState(join(folder, 'state.db'));
  const token = { name: 'test', userName: null, permission: 'admin', createdUnixMs: 1, expiresUnixMs: null } as const;
  await state.tokens.add({ ...token, accountId: FIRST_ACCOUNT_ID, hash: hashOf(TOKEN).toString('hex') });
  const reader = { ...token, permission: 'read_only' } as const;
  await state.tokens.add({ ...reader, accountId: FIRST_ACCOUNT_ID, hash: hashOf(READER).toString('hex') });
  await state.close();
  // The jobs' own telemetry and registry need a token as well.
  const args = ['--config', join(folder, 'run-bridge.yaml'), '--otlp-auth', 'token'];
  bridge = await BridgeProcess.start({ dataFolder: folder, args });
});
afterAll(async () => {
  await bridge.stop();
  rmSync(folder, { recursive: true, force: true });
});

async function ask(path: string, body?: string, token = TOKEN) {
  const answer = await fetch(`${bridge.webUrl}/api/v2/accounts/${FIRST_ACCOUNT_ID}${path}`, {
    method: body === undefined ? 'GET' : 'POST',
    headers: { authorization: `Token ${token}` },
    ...(body === undefined ? {} : { body }),
  });
  return { status: answer.status, body: JSON.parse(await answer.text()) };
}
const jobId = async (name: string): Promise<number> => (await ask(`/jobs/?name__icontains=${name}`)).body.data[0].id;
const start = async (name: string): Promise<number> => {
  const { status, body } = await ask(`/jobs/${await jobId(name)}/run/`, '{"cause":"a test"}');
  expect([status, body.data.status]).toEqual([200, 1]);
  expect(body.data.trigger).toMatchObject({ cause: 'a test', cause_category: 'api' });
  return body.data.id;
};
const run = async (id: number) => (await ask(`/runs/${id}/?include_related=run_steps`)).body.data;
const over = (id: number) =>
  until('the end of the run', async () => {
    const found = await run(id);
    return found.is_complete && found;
  });

test('a job is run over the API, one command after the other, each a step', async () => {
  const found = await over(await start('quick'));
  expect(found).toMatchObject({
    status: 10,
    run_steps: [
      { index: 1, status: 10 },
      { index: 2, status: 10 },
    ],
  });
  expect(readFileSync(join(folder, 'out'), 'utf8')).toBe('green\n');
});

test('a run under way is interrupted when it is cancelled, and runs no further command; twice is no mistake', async () => {
  const id = await start('slow');
  await until('the command', async () => (await run(id)).run_steps[0]?.logs.includes('under way'));
  expect((await ask(`/runs/${id}/cancel/`, '')).status).toBe(200);
  const found = await over(id);
  expect(found).toMatchObject({ status: 30, status_humanized: 'Cancelled', run_steps: [{ index: 1, status: 30 }] });
  expect((await ask(`/runs/${id}/cancel/`, '')).status).toBe(200);
});

test('a retry, and a rerun of a job that failed, are of the category rerun and say which run they start anew', async () => {
  const first = await start('broken');
  const retried = await over(first);
  expect(retried).toMatchObject({ status: 20, retrying_run_id: null });
  const { data: retry } = (await ask(`/runs/${first}/retry/`, '{"cause":"again"}')).body;
  expect(retry).toMatchObject({ retrying_run_id: first, trigger: { cause: 'again', cause_category: 'rerun' } });
  await over(retry.id);
  const { data: rerun } = (await ask(`/jobs/${await jobId('broken')}/rerun/`, '')).body;
  expect(rerun).toMatchObject({ retrying_run_id: retry.id, trigger: { cause_category: 'rerun' } });
  const { data: anew } = (await ask(`/jobs/${await jobId('quick')}/rerun/`, '')).body;
  expect(anew).toMatchObject({ retrying_run_id: null, trigger: { cause_category: 'api' } });
});

test.each([
  ['{"steps_override":["touch never"]}', 400],
  ['{"steps_override":"touch never"}', 400],
  ['{"git_sha":"$(touch never)"}', 400],
  ['{"cause":["x"]}', 400],
  ['{"cause":', 400],
  ['["touch never"]', 400],
])('a body that asks for something else runs nothing: %s', async (body, status) => {
  const before = (await ask('/runs/')).body.extra.pagination.total_count;
  expect((await ask(`/jobs/${await jobId('quick')}/run/`, body)).status).toBe(status);
  expect((await ask('/runs/')).body.extra.pagination.total_count).toBe(before);
});

const startWith = async (name: string, steps: readonly unknown[]) =>
  ask(`/jobs/${await jobId(name)}/run/`, JSON.stringify({ cause: 'other steps', steps_override: steps }));
const stepLines = () => readFileSync(join(folder, 'steps'), 'utf8').trim().split('\n');

test("a job that takes other steps runs those, with its own engine and places, and says so; its next run is the job's", async () => {
  const steps = ['dbt parse', `dbt build --select 'orders+ tag:a' --vars '{"a": "$(id)"}' -f`];
  const { status, body } = await startWith('open', steps);
  expect([status, body.data.trigger.steps_override]).toEqual([200, steps]);
  const places = '<--target><prod><--profiles-dir=conf>';
  expect(await over(body.data.id)).toMatchObject({
    status: 10,
    trigger: null,
    run_steps: [
      { run_step_command: { dbt_command: './engine/dbt parse --target prod --profiles-dir=conf' } },
      { index: 2 },
    ],
  });
  const lines = stepLines();
  expect(lines).toEqual([`<parse>${places}`, `<build><--select><orders+ tag:a><--vars><{"a": "$(id)"}><-f>${places}`]);
  expect(existsSync(join(folder, 'own-step'))).toBe(false);
  const again = (await ask(`/runs/${body.data.id}/?include_related=trigger`)).body.data;
  expect(again.trigger).toMatchObject({ steps_override: steps, cause: 'other steps', cause_category: 'api' });
  const own = await over(await start('open'));
  expect(own).toMatchObject({ status: 10, run_steps: [{ index: 1 }, { index: 2 }] });
  expect(existsSync(join(folder, 'own-step'))).toBe(true);
  const { data } = (await ask(`/runs/${own.id}/?include_related=trigger,job`)).body;
  expect([data.trigger.steps_override, data.job.execute_steps]).toEqual([
    null,
    ['./engine/dbt build --target prod --profiles-dir=conf --full-refresh', 'touch own-step'],
  ]);
});

test('a retry and a rerun of a run with other steps resume in those', async () => {
  const steps = ['dbt seed', 'dbt run --select bad', 'dbt test', 'dbt compile'];
  const first = (await startWith('open', steps)).body.data.id;
  expect(await over(first)).toMatchObject({ status: 20, run_steps: [{ status: 10 }, { status: 20 }] });
  expect((await ask(`/runs/${first}/retry/`)).body.data).toEqual({
    failed_step: './engine/dbt run --select bad --target prod --profiles-dir=conf',
    skipped_steps: ['dbt test', 'dbt compile'],
  });
  const { data: rerun } = (await ask(`/jobs/${await jobId('open')}/rerun/`, '')).body;
  expect(rerun).toMatchObject({ retrying_run_id: first, trigger: { cause_category: 'rerun', steps_override: steps } });
  expect(await over(rerun.id)).toMatchObject({ status: 20, run_steps: [{ status: 20 }] });
  writeFileSync(join(folder, 'mended'), '');
  const { data: retry } = (await ask(`/runs/${rerun.id}/retry/`, '{"cause":"mended"}')).body;
  expect(retry).toMatchObject({ retrying_run_id: rerun.id, trigger: { cause: 'mended', steps_override: steps } });
  expect(await over(retry.id)).toMatchObject({ status: 10, run_steps: [{ index: 1 }, { index: 2 }, { index: 3 }] });
  expect(stepLines().slice(-3)).toEqual(
    ['run><--select><bad', 'test', 'compile'].map((words) => `<${words}><--target><prod><--profiles-dir=conf>`),
  );
  // It succeeded: a rerun is the job as it is declared.
  const { data: anew } = (await ask(`/jobs/${await jobId('open')}/rerun/`, '')).body;
  expect(anew).toMatchObject({ retrying_run_id: null, trigger: { steps_override: null } });
  await over(anew.id);
});

test.each([
  [
    'quick',
    ['dbt build'],
    /"quick" takes no steps_override: .*"steps-override: true".* or leave steps_override out\.$/,
  ],
  ['open', ['dbt parse', 'dbt build --target prod'], /^Step 2 of steps_override has --target, .*: dbt build --target/],
  ['open', ['sh -c "touch never"'], /^Step 1 of steps_override does not begin with dbt: sh -c/],
  ['open', ['dbt build && touch never'], /^Step 1 of steps_override has a & outside of single quotes/],
  ['open', ['dbt run-operation drop_all'], /^Step 1 of steps_override has no command that is allowed there \(build, /],
])('other steps are refused in the envelope that clients show: %s %j', async (name, steps, message) => {
  const before = (await ask('/runs/')).body.extra.pagination.total_count;
  expect(await startWith(name, steps)).toMatchObject({
    status: 400,
    body: { status: { code: 400, is_success: false, user_message: expect.stringMatching(message) }, data: null },
  });
  expect((await ask('/runs/')).body.extra.pagination.total_count).toBe(before);
});

test("the job's own commands are no other steps, and a selection may be long", async () => {
  const own = await startWith('quick', [`sh -c 'echo $COLOUR > out'`, 'touch done']);
  expect([own.status, own.body.data.trigger.steps_override]).toEqual([200, null]);
  const selection = Array.from({ length: 4_000 }, (_, at) => `fqn:shop.staging.model_${at}`).join(' ');
  const { status, body } = await startWith('open', [`dbt ls --select '${selection}'`]);
  expect(status).toBe(200);
  expect(await over(body.data.id)).toMatchObject({ status: 10 });
  expect(stepLines().at(-1)).toContain(`<ls><--select><${selection}>`);
  await over(own.body.data.id);
});

test('who may not run a job may not run it with other steps, and a rerun takes none', async () => {
  const steps = '{"steps_override":["dbt build"]}';
  expect((await ask(`/jobs/${await jobId('open')}/run/`, steps, READER)).status).toBe(403);
  const { status, body } = await ask(`/jobs/${await jobId('open')}/rerun/`, steps);
  expect([status, body.status.user_message]).toEqual([400, expect.stringContaining('POST to jobs/{id}/run/')]);
});

test('the program that wants to add a job is told by which name it finds one', async () => {
  const { status, body } = await ask('/jobs/', '{"name":"DAGSTER_ADHOC_JOB__2001__3001","project_id":2001}');
  expect([status, body.data]).toEqual([405, null]);
  expect(body.status.user_message).toMatch(/run-bridge\.yaml.*"DAGSTER_ADHOC_JOB__2001__3001".*"steps-override: true"/);
  // Dagster shows 400 characters of an answer.
  expect(JSON.stringify(body).indexOf('its own steps.')).toBeLessThan(386);
  expect((await ask('/jobs/', '')).body.status.user_message).toContain('by the name, the project');
});

test('a job without commands answers 409, one that is not there 404', async () => {
  const { status, body } = await ask(`/jobs/${await jobId('named')}/run/`, '{}');
  expect([status, body.status.code, body.data]).toEqual([409, 409, null]);
  expect((await ask('/jobs/99/run/', '{}')).status).toBe(404);
});
