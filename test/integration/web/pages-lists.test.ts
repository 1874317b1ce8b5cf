import { afterAll, beforeAll, expect, it } from 'vitest';
import { PageServer } from '../../fake/page-server.js';
import { commandNote } from '../../fake/webhook-facts.js';

const CODE = { gitBranch: 'main', gitSha: '3f2c1d9b0e4a5c6d7e8f90a1b2c3d4e5f6a7b8c9' };

let pages: PageServer;
let admin: string;
beforeAll(async () => {
  pages = await PageServer.open([]);
  const { server } = pages.api;
  admin = await server.token('account_admin');
  const { invocations, executions } = server.state;
  // 1001 to 1003, the last of another job; and 1004, which somebody started.
  await invocations.note([commandNote(1, { startedUnixMs: 1_000, endedUnixMs: 2_000 })], 1);
  await invocations.note([commandNote(2, { startedUnixMs: 3_000, endedUnixMs: 4_000, ...CODE })], 1);
  const other = { job: 'hourly', environment: 'production', project: 'shop' };
  await invocations.note([commandNote(3, { startedUnixMs: 5_000, endedUnixMs: 6_000, scope: other })], 1);
  const scope = { job: 'nightly', environment: 'production', project: 'shop' };
  const step = { stepId: 'asked', runKey: null, command: ['dbt', 'build'], isLast: false, startedUnixMs: 7_000 };
  await executions.register({ ...step, ...scope, reason: 'Started by <Airflow>' }, 'local');
});
afterAll(() => pages.close());

it('says in lists and on the page of a run what started it, and the branch and commit, where they are known', async () => {
  const code = 'main@3f2c1d9';
  const reason = 'Started by &lt;Airflow&gt;';
  for (const path of ['/', '/jobs/4001']) {
    const { html } = await pages.get(path, admin);
    const rowOf = (id: number) => new RegExp(`<tr id="run-${id}">[\\s\\S]*?</tr>`).exec(html)?.[0];
    expect(rowOf(1002), path).toContain(code);
    expect(rowOf(1004), path).toContain(reason);
    expect(rowOf(1001), path).not.toMatch(/@|Started by/);
  }
  expect((await pages.get('/runs/1002', admin)).html).toMatch(new RegExp(`<p class="head-line">.*${code}</span>`));
  expect((await pages.get('/runs/1004', admin)).html).toMatch(new RegExp(`<p class="head-line">.*${reason}</span>`));
});

it('leads from a run to the ones of its job before and after it, on the same of its pages', async () => {
  const links = async (path: string) => {
    const { html } = await pages.get(path, admin);
    const nav = /<nav class="neighbours"[\s\S]*?<\/nav>/.exec(html)?.[0] ?? '';
    return Array.from(nav.matchAll(/href="([^"]*)" rel="(\w+)"/g), ([, href, rel]) => [rel, href]);
  };
  expect(await links('/runs/1002/nodes')).toEqual([
    ['prev', '/runs/1001/nodes'],
    ['next', '/runs/1004/nodes'],
  ]);
  expect(await links('/runs/1001')).toEqual([['next', '/runs/1002']]);
  expect(await links('/runs/1003')).toEqual([]);
});

it('says who somebody is only where there could be somebody else', async () => {
  const who = async (token: string) => {
    const { html } = await pages.get('/', token);
    return /<form class="who"[^>]*>(.*?)<button/.exec(html)?.[1]?.replaceAll(/<[^>]*>/g, '');
  };
  const reader = await pages.api.server.token('read_only');
  expect([await who(admin), await who(reader)]).toEqual(['', 'read only']);
  await pages.api.server.state.accounts.add({ name: 'finance', id: null }, 100);
  expect([await who(admin), await who(reader)]).toEqual(['account 10001, account admin', 'account 10001, read only']);
});
