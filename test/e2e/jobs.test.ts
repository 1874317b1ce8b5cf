import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { hashOf } from '../../src/api/authenticator.js';
import { FIRST_ACCOUNT_ID } from '../../src/storage/account-store.js';
import { openSqliteState } from '../../src/storage/open-sqlite-state.js';
import { BridgeProcess } from '../tool/bridge-process.js';
import { until } from '../tool/until.js';

const TOKEN = 'rbt_a-test';
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
`,
  );
  const state = await openSqliteState(join(folder, 'state.db'));
  const token = { name: 'test', userName: null, permission: 'admin', createdUnixMs: 1, expiresUnixMs: null } as const;
  await state.tokens.add({ ...token, accountId: FIRST_ACCOUNT_ID, hash: hashOf(TOKEN).toString('hex') });
  await state.close();
  // The jobs' own telemetry and registry need a token as well.
  const args = ['--config', join(folder, 'run-bridge.yaml'), '--otlp-auth', 'token'];
  bridge = await BridgeProcess.start({ dataFolder: folder, args });
});
afterAll(async () => {
  await bridge.stop();
  rmSync(folder, { recursive: true, force: true });
});

async function ask(path: string, body?: string) {
  const answer = await fetch(`${bridge.webUrl}/api/v2/accounts/${FIRST_ACCOUNT_ID}${path}`, {
    method: body === undefined ? 'GET' : 'POST',
    headers: { authorization: `Token ${TOKEN}` },
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

test('a job without commands answers 409, one that is not there 404', async () => {
  const { status, body } = await ask(`/jobs/${await jobId('named')}/run/`, '{}');
  expect([status, body.status.code, body.data]).toEqual([409, 409, null]);
  expect((await ask('/jobs/99/run/', '{}')).status).toBe(404);
});
