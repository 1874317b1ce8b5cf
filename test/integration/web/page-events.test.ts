import { appendFileSync } from 'node:fs';
import { type ClientRequest, request } from 'node:http';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { hashOf } from '../../../src/api/authenticator.js';
import { MAX_STREAMS } from '../../../src/web/page/run-events.js';
import { PageServer } from '../../fake/page-server.js';
import { sampleLines } from '../../fake/sample-run.js';
import { commandNote } from '../../fake/webhook-facts.js';
import { until, untilTurned } from '../../tool/until.js';

const OTHER_ACCOUNT = 20_002;
/** Longer than any pause between two looks. */
const A_LOOK_MS = 1_100;

let pages: PageServer;
const open: ClientRequest[] = [];
beforeEach(async () => {
  // 1001 is over, 1002 under way.
  pages = await PageServer.open(['build-clean', 'parse'], null, true);
});
afterEach(async () => {
  for (const one of open.splice(0)) one.destroy();
  await pages.close();
});

/** Follows the events as a browser does. */
function follow(token: string) {
  const seen = { status: 0, headers: {} as Readonly<Record<string, unknown>>, text: '', isOver: false };
  const headers = { Cookie: `run_bridge_token=${token}`, 'Sec-Fetch-Site': 'same-origin' };
  const sent = request({ host: '127.0.0.1', port: pages.api.server.port, path: '/events', headers, agent: false });
  sent.on('response', (response) => {
    Object.assign(seen, { status: response.statusCode, headers: response.headers });
    response.setEncoding('utf8').on('data', (text: string) => {
      seen.text += text;
    });
    response.on('error', () => {});
    response.on('close', () => {
      seen.isOver = true;
    });
  });
  sent.on('error', () => {});
  sent.end();
  open.push(sent);
  return seen;
}

/** Names of events with their data. */
const messages = (text: string) =>
  Array.from(text.matchAll(/^event: (.*)\ndata: (.*)$/gm), ([, name, data]) => [name, JSON.parse(data ?? '')]);

const BEGUN = ['runs', { ids: null }];

/** Lets time pass until something holds, slowly enough for the server to look in between. */
async function passUntil(holds: () => boolean, stepMs = A_LOOK_MS): Promise<void> {
  await until(holds.toString(), () => {
    pages.api.server.clock.advance(stepMs);
    return holds();
  });
}

/** The first message that comes after the next second. */
async function nextOf(seen: { readonly text: string }) {
  const { length } = messages(seen.text);
  pages.api.server.clock.advance(1_000);
  await untilTurned(() => messages(seen.text).length > length);
  return messages(seen.text)[length];
}

const token = (given = {}) => pages.api.server.token('read_only', given);

describe('events of runs', () => {
  it('begin with any of them, then name those that began, went on and ended, and nothing on the way may hold them back', async () => {
    const { api } = pages;
    const seen = follow(await token());
    await untilTurned(() => messages(seen.text).length === 1);
    expect(seen).toMatchObject({
      status: 200,
      headers: { 'cache-control': 'no-store, no-transform', 'x-accel-buffering': 'no' },
      text: `retry: 2000\n\nevent: runs\ndata: {"ids":null}\n\n`,
    });

    // Each within a second, so that no length of a run under way has grown enough to be told.
    await api.server.state.invocations.note([commandNote(7)], 1);
    expect(await nextOf(seen)).toEqual(['runs', { ids: [1003] }]);
    const [, traceId] = api.traceIds;
    if (traceId === undefined) throw new Error('no run');
    appendFileSync(join(api.dataFolder, 'runs', traceId, 'telemetry.jsonl'), `${sampleLines('parse').at(-1)}\n`);
    expect(await nextOf(seen)).toEqual(['runs', { ids: [1002] }]);
    await api.note(traceId, true);
    expect(await nextOf(seen)).toEqual(['runs', { ids: [1002] }]);
  });

  it('tell of the length of what is under way though nothing comes of it, and of nothing but life where all is over', async () => {
    const { api } = pages;
    const seen = follow(await token());
    const counted = (wanted: string) => messages(seen.text).filter(([name]) => name === wanted).length;
    await passUntil(() => counted('runs') === 3);
    expect(messages(seen.text).filter(([name]) => name === 'runs')[2]).toEqual(['runs', { ids: [1002] }]);
    if (api.traceIds[1] !== undefined) await api.note(api.traceIds[1], true);
    const aliveCount = counted('alive');
    await passUntil(() => counted('alive') >= aliveCount + 3);
    const runsCount = counted('runs');
    await passUntil(() => counted('alive') >= aliveCount + 6);
    expect(counted('runs')).toBe(runsCount);
  });

  it("tell an account nothing of another's runs", async () => {
    const { api } = pages;
    const theirs = follow(await token({ accountId: OTHER_ACCOUNT }));
    const own = follow(await token());
    await untilTurned(() => [theirs, own].every(({ text }) => messages(text).length === 1));
    await api.server.state.invocations.note([commandNote(7)], 1);
    await passUntil(() => messages(own.text).some(([, { ids }]) => ids?.includes(1003)));
    await passUntil(() => messages(theirs.text).some(([name]) => name === 'alive'));
    await api.server.state.invocations.note([commandNote(8, { accountId: OTHER_ACCOUNT })], 1);
    await passUntil(() => theirs.text.includes('1004'));
    expect(messages(theirs.text).filter(([name]) => name === 'runs')).toEqual([BEGUN, ['runs', { ids: [1004] }]]);
    expect(theirs.text).not.toContain('1003');
    expect(own.text).not.toContain('1004');
  });

  it('end when the token does, and are refused to who has none', async () => {
    const { state, clock } = pages.api.server;
    const secret = await token();
    const [revoked, expiring] = [follow(secret), follow(await token({ expiresUnixMs: clock.nowUnixMs() + 300_000 }))];
    await untilTurned(() => [revoked, expiring].every(({ text }) => messages(text).length === 1));
    const row = await state.tokens.findGood(hashOf(secret).toString('hex'), clock.nowUnixMs());
    await state.tokens.revoke(row?.id ?? 0, clock.nowUnixMs());
    await passUntil(() => revoked.isOver);
    expect(expiring.isOver).toBe(false);
    await passUntil(() => expiring.isOver, 30_000);
    const again = follow(secret);
    await untilTurned(() => again.isOver);
    expect(again.status).toBe(401);
  });

  it('end after ten minutes, so that the browser comes again with the cookie that it has then', async () => {
    const seen = follow(await token());
    await untilTurned(() => messages(seen.text).length === 1);
    await passUntil(() => seen.isOver, 60_000);
  });

  it('are for so many pages at once, and for others when one has gone', async () => {
    const secret = await token();
    const all = Array.from({ length: MAX_STREAMS }, () => follow(secret));
    await untilTurned(() => all.every(({ text }) => messages(text).length === 1));
    const refused = follow(secret);
    await untilTurned(() => refused.isOver);
    expect(refused).toMatchObject({ status: 503, headers: { 'retry-after': '60' } });
    expect(refused.text).toContain(`${MAX_STREAMS} pages follow runs already; try again later.`);
    open[0]?.destroy();
    let next = follow(secret);
    await passUntil(() => {
      if (next.isOver) next = follow(secret);
      return messages(next.text).length === 1;
    });
  });
});
