import { appendFileSync, readFileSync, truncateSync, writeFileSync } from 'node:fs';
import { request } from 'node:http';
import { join } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type OwnApi, openOwnApi } from '../../fake/own-api.js';
import { sampleLines } from '../../fake/sample-run.js';
import { untilTurned } from '../../tool/until.js';

let api: OwnApi;
let token: string;
beforeAll(async () => {
  api = await openOwnApi(['build-mixed', 'fail-fast', 'parse'], true);
  token = await api.server.token('read_only');
});
afterAll(() => api.close());

const V1 = '/api/run-bridge/v1';
const get = async (path: string, by = token) => await api.server.ask('GET', `${V1}${path}`, by);

/** Follows a run's events. */
function follow(path: string, headers: Readonly<Record<string, string>> = {}) {
  const seen = { status: 0, text: '', isOver: false, close: () => {} };
  const sent = request(
    {
      host: '127.0.0.1',
      port: api.server.port,
      path: `${V1}${path}`,
      headers: { Authorization: `Token ${token}`, ...headers },
    },
    (response) => {
      seen.status = response.statusCode ?? 0;
      response.setEncoding('utf8').on('data', (text: string) => {
        seen.text += text;
      });
      response.on('close', () => {
        seen.isOver = true;
      });
    },
  );
  sent.on('error', () => {});
  sent.end();
  seen.close = () => sent.destroy();
  return seen;
}

function events(text: string) {
  return text.split('\n\n').flatMap((block) => {
    const [, event, id, data] = /^event: (.*)\nid: (.*)\ndata: (.*)$/.exec(block) ?? [];
    return event === undefined ? [] : [{ event, id, data: JSON.parse(data ?? 'null') }];
  });
}

describe('a run', () => {
  it('is found by its number, a trace id, and an invocation id in any case', async () => {
    const [traceId = ''] = api.traceIds;
    const uuid = traceId.replace(/^(.{8})(.{4})(.{4})(.{4})/, '$1-$2-$3-$4-');
    for (const name of ['1001', traceId, uuid, uuid.toUpperCase()]) {
      expect(await get(`/runs/${name}`)).toMatchObject({
        status: 200,
        body: {
          data: { id: 1001, status: 'error', job: { name: 'nightly' }, steps: [{ commands: [{ trace_id: traceId }] }] },
        },
      });
    }
  });

  it('of nobody, of another account, or misspelt is not there, whatever is asked of it', async () => {
    const passthrough = await api.server.token('admin', { accountId: 10_002 });
    for (const of of ['', '/nodes', '/measures', '/records', '/events']) {
      for (const name of ['4711', '01001', 'x', '1e3', 'f'.repeat(32)])
        expect((await get(`/runs/${name}${of}`)).status).toBe(404);
      for (const name of ['1001', api.traceIds[0]])
        expect((await get(`/runs/${name}${of}`, passthrough)).status).toBe(404);
    }
  });

  it('has nodes and measures, and is compared with earlier successes of its job', async () => {
    const nodes = await get('/runs/1001/nodes');
    expect(nodes.body).toMatchObject({
      data: expect.arrayContaining([expect.objectContaining({ unique_id: 'model.shop.broken', outcome: 'error' })]),
    });
    expect((await get('/runs/1001/measures')).body).toMatchObject({
      data: { comparison: null, commands: [{ command: 'build', totals: { node_count: 21 } }] },
    });
  });
});

it('a run is compared with earlier ones that had the same commands alone', async () => {
  const other = await openOwnApi(['build-clean', 'joined', 'parse']);
  try {
    const admin = await other.server.token('admin');
    const measures = (run: number) => other.server.ask('GET', `${V1}/runs/${run}/measures`, admin);
    expect((await measures(1_002)).body).toMatchObject({ data: { comparison: { earlier_count: 1 } } });
    // Both builds are earlier successes of its job.
    expect((await measures(1_003)).body).toMatchObject({ data: { comparison: null } });
  } finally {
    await other.close();
  }
});

describe('records', () => {
  const page = async (query: string) => {
    const { body } = await get(`/runs/1001/records?${query}`);
    return body as {
      data: { event_type: string; severity_number: number; attributes: { unique_id?: string } }[];
      extra: { next_cursor: string | null };
    };
  };

  it('come in pages that are together all lines of the log, as they are', async () => {
    const found: unknown[] = [];
    let cursor: string | null = null;
    let count = 0;
    do {
      const { data, extra } = await page(`limit=300${cursor === null ? '' : `&cursor=${cursor}`}`);
      found.push(...data);
      cursor = extra.next_cursor;
      count += 1;
    } while (cursor !== null);
    expect(count).toBe(3);
    expect(found).toEqual(sampleLines('build-mixed').map((line) => JSON.parse(line)));
  });

  it('are filtered by event type, node, severity and kind', async () => {
    const { data } = await page('event_type=NodeProcessed&record_type=SpanEnd&limit=1000');
    expect([data.length, new Set(data.map((each) => each.event_type)).size]).toEqual([21, 1]);
    const broken = await page('node=model.shop.broken&limit=1000');
    expect(new Set(broken.data.map(({ attributes }) => attributes.unique_id))).toEqual(new Set(['model.shop.broken']));
    expect((await page('severity=error')).data.map((each) => each.severity_number)).toEqual([17]);
  });

  it.each([
    ['limit=0', 'limit'],
    ['limit=1001', 'limit'],
    ['severity=loud', 'severity'],
    ['cursor=x', 'cursor'],
    ['cursor=1.2.3', 'cursor'],
  ])('are not given for %s, which is said', async (query, name) => {
    const { status, body } = await get(`/runs/1001/records?${query}`);
    expect(status).toBe(400);
    expect(body).toMatchObject({ status: { user_message: expect.stringContaining(`${name}: `) } });
  });
});

describe('events', () => {
  it('of a run that is over are all its records, and the end; a client that comes again is asked to stop', async () => {
    const seen = follow('/runs/1002/events');
    await untilTurned(() => seen.isOver);
    const all = events(seen.text);
    expect(all.map(({ event }) => event)).toEqual(['run', ...sampleLines('fail-fast').map(() => 'record'), 'end']);
    expect(all.at(-1)).toEqual({ event: 'end', id: 'end', data: { id: 1002, status: 'error' } });
    const again = follow('/runs/1002/events', { 'Last-Event-ID': 'end' });
    await untilTurned(() => again.isOver);
    expect(again.status).toBe(204);
  });

  it('go on behind the last one that was seen', async () => {
    const first = follow('/runs/1002/events');
    await untilTurned(() => first.isOver);
    const all = events(first.text);
    const seen = follow('/runs/1002/events', { 'Last-Event-ID': all[100]?.id ?? '' });
    await untilTurned(() => seen.isOver);
    expect(events(seen.text).slice(1)).toEqual(all.slice(101));
  });

  it('of a run under way come as its records do, with a sign of life between, until it is over', async () => {
    const [, , traceId] = api.traceIds;
    if (traceId === undefined) throw new Error('no run');
    const log = join(api.dataFolder, 'runs', traceId, 'telemetry.jsonl');
    const lines = readFileSync(log, 'utf8').trimEnd().split('\n');
    writeFileSync(log, `${lines.slice(0, 5).join('\n')}\n`);
    const seen = follow('/runs/1003/events');
    const recordCount = () => events(seen.text).filter(({ event }) => event === 'record').length;
    await untilTurned(() => recordCount() === 5);
    const { clock } = api.server;
    for (let ms = 0; ms < 16_000; ms += 250) {
      clock.advance(250);
      await new Promise((resolve) => setImmediate(resolve));
    }
    await untilTurned(() => {
      clock.advance(250);
      return seen.text.includes(': alive');
    });
    appendFileSync(log, `${lines.slice(5).join('\n')}\n`);
    await untilTurned(() => {
      clock.advance(250);
      return recordCount() === lines.length;
    });
    expect(seen.isOver).toBe(false);
    await api.note(traceId, true);
    await untilTurned(() => {
      clock.advance(250);
      return seen.isOver;
    });
    expect(events(seen.text).slice(-2)).toMatchObject([
      { event: 'run', data: { status: 'success' } },
      { event: 'end' },
    ]);
    truncateSync(log, 0);
  });

  it('are for 32 clients at once', async () => {
    const open = await openOwnApi(['parse'], true);
    const at = open.server.port;
    const theirs = await open.server.token('read_only');
    const statuses: number[] = [];
    const all = Array.from({ length: 33 }, () => {
      const headers = { Authorization: `Token ${theirs}` };
      const sent = request(
        { host: '127.0.0.1', port: at, path: `${V1}/runs/1001/events`, headers, agent: false },
        (response) => {
          statuses.push(response.statusCode ?? 0);
          response.on('error', () => {}).resume();
        },
      );
      sent.on('error', () => {});
      sent.end();
      return sent;
    });
    await untilTurned(() => statuses.length === 33);
    expect(statuses.filter((status) => status === 503).length).toBe(1);
    for (const sent of all) sent.destroy();
    await open.close();
  });
});

describe('SQL', () => {
  it("asks the account's runs and no others", async () => {
    const sql = 'SELECT count(DISTINCT trace_id) FROM steps';
    const own = await api.server.ask('POST', `${V1}/query`, await api.server.token('analyst'), { sql });
    expect(own).toMatchObject({ status: 200, body: { data: { rows: [[3]], row_count: 1, is_truncated: false } } });
    const passthrough = await api.server.token('admin', { accountId: 10_002 });
    expect(await api.server.ask('POST', `${V1}/query`, passthrough, { sql })).toMatchObject({
      body: { data: { rows: [[0]] } },
    });
  });

  it('needs the right for it, and a body that is one', async () => {
    expect((await api.server.ask('POST', `${V1}/query`, token, { sql: 'FROM runs' })).status).toBe(403);
    const analyst = await api.server.token('analyst');
    expect((await api.server.ask('POST', `${V1}/query`, analyst)).status).toBe(400);
    expect((await api.server.ask('POST', `${V1}/query`, analyst, { sql: 'FROM runs', limit: 100_001 })).status).toBe(
      400,
    );
    expect((await api.server.ask('POST', `${V1}/query`, analyst, { sql: 'x'.repeat(600_000) })).status).toBe(413);
  });
});

it('a run of 16,277 records is answered whole, page by page, and measured', async () => {
  const large = await openOwnApi(['big-build']);
  try {
    const reader = await large.server.token('read_only');
    const found: unknown[] = [];
    for (let cursor: string | null = ''; cursor !== null; ) {
      const query: string = `limit=1000${cursor === '' ? '' : `&cursor=${cursor}`}`;
      const { body } = await large.server.ask('GET', `${V1}/runs/1001/records?${query}`, reader);
      const { data, extra } = body as { data: readonly unknown[]; extra: { next_cursor: string | null } };
      found.push(...data);
      cursor = extra.next_cursor;
    }
    expect(found.length).toBe(16_277);
    const lines = sampleLines('big-build').map((line): unknown => JSON.parse(line));
    expect(isDeepStrictEqual(found, lines)).toBe(true);
    const { body } = await large.server.ask('GET', `${V1}/runs/1001/measures`, reader);
    expect(body).toMatchObject({
      data: { commands: [{ command: 'build', totals: { node_counts: { failed: 10, error: 2 } } }] },
    });
  } finally {
    await large.close();
  }
});
