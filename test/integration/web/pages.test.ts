import { mkdirSync, readdirSync, readFileSync, rmSync, statSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { unzipSync } from 'fflate';
import { parquetReadObjects } from 'hyparquet';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { z } from 'zod';
import { makeSignInLink } from '../../../src/api/sign-in-links.js';
import { FolderArtifactStore } from '../../../src/artifact/folder-artifact-store.js';
import { groupBy } from '../../../src/core/lists.js';
import { silentLogger } from '../../../src/core/logger.js';
import { EXAMPLES } from '../../../src/query/pages.js';
import { VIEW_NAMES } from '../../../src/query/views.js';
import { parseTraceId } from '../../../src/record/telemetry-record.js';
import { Redactor } from '../../../src/redaction/redactor.js';
import { FIRST_ACCOUNT_ID } from '../../../src/storage/account-store.js';
import {
  ArtifactError,
  type ArtifactPath,
  COMMAND_OUTPUTS,
  parseArtifactPath,
} from '../../../src/storage/artifacts.js';
import { PERMISSION_SETS, type PermissionSet, RUN_STATUS } from '../../../src/storage/state-tables.js';
import { findLines, outputsOf } from '../../../src/web/page/run-logs-page.js';
import { readRunPageModel } from '../../../src/web/page/run-page-model.js';
import { NO_FILTER } from '../../../src/webhook/subscription.js';
import { endpointsOf, PAGE_TABLE } from '../../fake/endpoint-table.js';
import { rowOf } from '../../fake/noted-run.js';
import { PageServer } from '../../fake/page-server.js';
import { attempted, commandNote, subscription } from '../../fake/webhook-facts.js';
import { until, untilTurned } from '../../tool/until.js';

const SCRIPT = '<script>alert(1)</script>"\'&';
const OTHER_ACCOUNT = 20_002;

let pages: PageServer;
let admin: string;
let passthrough: string;
const tokens = new Map<PermissionSet, string>();
beforeAll(async () => {
  pages = await PageServer.open(['build-mixed', 'build-clean']);
  const { server } = pages.api;
  for (const set of PERMISSION_SETS) tokens.set(set, await server.token(set));
  admin = tokens.get('admin') ?? '';
  passthrough = await server.token('account_admin', { accountId: OTHER_ACCOUNT });
  const place = { job: SCRIPT, environment: SCRIPT, project: SCRIPT };
  const { invocations, subscriptions } = server.state;
  await invocations.note(
    [commandNote(7, { scope: place, verdict: 'error', statusMessage: `It said 'a secret' ${SCRIPT}` })],
    1,
  );
  await invocations.note([commandNote(8, { verdict: null, isSaved: false })], 1);
  await subscriptions.add(subscription('a', { name: SCRIPT, clientUrl: 'https://hooks.example.com/a?key=sesame' }));
  await subscriptions.add(subscription('theirs', { accountId: OTHER_ACCOUNT, name: 'theirs' }));
  await subscriptions.add(
    subscription('chat', { kind: 'slack', clientUrl: 'https://hooks.slack.com/services/sesame' }),
  );
  nameNode(pages.api.dataFolder, pages.api.traceIds[0] ?? '', 'model.shop.broken', `model.shop.${SCRIPT}`);
});
afterAll(() => pages.close());

/** Writes another name for a node into a record log. */
function nameNode(dataFolder: string, traceId: string, from: string, to: string): void {
  const folder = join(dataFolder, 'runs', traceId);
  const log = join(folder, 'telemetry.jsonl');
  writeFileSync(log, readFileSync(log, 'utf8').replaceAll(from, JSON.stringify(to).slice(1, -1)));
  const summary = JSON.parse(readFileSync(join(folder, 'run.json'), 'utf8'));
  writeFileSync(join(folder, 'run.json'), JSON.stringify({ ...summary, log_bytes: statSync(log).size }));
}

const filled = (path: string) => path.replace(':accountId', '10001').replaceAll(/:\w+/g, 'wsu_none');

/** 1003 and 1004 are steps that began long before the samples did. */
const BY_START = ['1002', '1001', '1004', '1003'];

it('says of a node that did not finish no more than that', async () => {
  const own = await PageServer.open(['fail-fast']);
  try {
    const { html } = await own.get('/runs/1001', await own.api.server.token('admin'));
    expect(html).toMatch(/nodes? did not finish|nodes? (?:was|were) canceled/);
    expect(html).not.toContain('It failed without a message');
  } finally {
    await own.close();
  }
});

describe('the list of runs', () => {
  it('has the last to start first, whenever it came, with what became of them, and says which are running', async () => {
    const { status, html } = await pages.get('/', admin);
    expect(status).toBe(200);
    const rows = html.split(/<tr\b[^>]*>/).slice(2);
    expect(rows.map((row) => /href="\/runs\/(\d+)"/.exec(row)?.[1])).toEqual(BY_START);
    expect(rows.map((row) => /<\/span> (\w+)<\/span>/.exec(row)?.[1])).toEqual([
      ...['success', 'failed', 'running', 'failed'],
    ]);
    expect(rows[1]).toContain('<td class="number bad minor">3</td>');
    expect(rows[0]).toContain('<td class="number minor">0</td>');
  });

  it('says why a run failed in a line, also where nobody has looked at it before', async () => {
    const { server, dataFolder, traceIds } = pages.api;
    const [traceId] = traceIds;
    if (traceId === undefined) throw new Error('no run');
    const summary = readFileSync(join(dataFolder, 'runs', traceId, 'run.json'), 'utf8');
    const row = { traceId, firstSeenUnixMs: 1_000, lastSeenUnixMs: 2_000, logBytes: 7, parquetBytes: 7 };
    await server.state.runs.save([{ ...row, state: 'finished', summary }]);
    // The first look has it measured, and waits a moment for that.
    const isMeasured = async () => (await pages.get('/', admin)).html.includes('Binder Error');
    await until('the cause', isMeasured);
    const { html } = await pages.get('/', admin);
    expect(html).toMatch(/1 node failed with an error, 2 tests failed: model .*Binder Error: Referenced column/);
    expect(html).toContain('aria-label="1 error, 2 failed');
    // So does the page of its job, which has no columns that would be empty.
    const ofJob = (await pages.get('/jobs/4001', tokens.get('read_only') ?? '')).html;
    expect(ofJob).toMatch(/1 node failed with an error, 2 tests failed: model .*Binder Error: Referenced column/);
    expect(Array.from(ofJob.matchAll(/<th scope="col"[^>]*>([^<]*)/g), ([, name]) => name)).toEqual([
      'Run',
      'Status',
      'Started',
      'Duration',
      'Cause',
    ]);
  });

  it('says of a failed run that nothing ran where nothing did, and draws its phases', async () => {
    const own = await PageServer.open(['parse']);
    const { server, traceIds, dataFolder } = own.api;
    const [traceId] = traceIds;
    if (traceId === undefined) throw new Error('no run');
    const token = await server.token('admin');
    const summary = readFileSync(join(dataFolder, 'runs', traceId, 'run.json'), 'utf8');
    const row = { traceId, firstSeenUnixMs: 1_000, lastSeenUnixMs: 2_000, logBytes: 7, parquetBytes: 7 };
    await server.state.runs.save([{ ...row, state: 'finished', summary }]);
    await server.state.invocations.note([{ ...commandNote(1, { verdict: 'error' }), traceId }], 1);
    await until('the measures', async () => (await own.get('/', token)).html.includes('nothing ran'));
    const { html } = await own.get('/', token);
    expect(html).toContain('<td class="number minor">–</td>');
    // Of one environment and one project there is nothing to tell apart.
    expect(html).not.toContain('>Environment<');
    const nodes = (await own.get('/runs/1001/nodes', token)).html;
    expect([nodes.includes('No node ran in this step.'), nodes.includes('Which nodes')]).toEqual([true, false]);
    const drawn = JSON.parse((await own.get('/runs/1001/timeline.json', token)).html);
    expect(drawn).toMatchObject({
      nodes: [],
      groups: [{ lanes: [] }],
      phases: [expect.arrayContaining([expect.anything()])],
    });
    await own.close();
  });

  it.each([
    ['/?status=failed', ['1001', '1003']],
    ['/?status=running', ['1004']],
    ['/?text=NIGHTLY&status=success', ['1002']],
    ['/?text=NIGHTLY&status=succeeded', ['1002']],
    ['/?text=alert(1)', ['1003']],
    ['/?text=1002', ['1002']],
    ['/?status=nonsense&page=zero&text=', BY_START],
    ['/?page=99', []],
    [`/?text=${encodeURIComponent(SCRIPT.repeat(9))}`, []],
  ])('shows of %s the runs %j', async (path, ids) => {
    const { html } = await pages.get(path, admin);
    expect(Array.from(html.matchAll(/href="\/runs\/(\d+)"/g), ([, id]) => id)).toEqual(ids);
  });

  it('leads to the histories of their models and tests, with what they cost', async () => {
    const { html } = await pages.get('/models', admin);
    expect(html).toContain('From the last 1 run');
    expect(html).toContain('href="/models?node=model.shop.stg_orders"');
    const one = await pages.get('/models?node=model.shop.stg_orders', admin);
    expect(one.html).toContain('href="/runs/1001/nodes?node=model.shop.stg_orders"');
    expect((await pages.get('/models?view=failing', admin)).html).toContain('&lt;script&gt;alert(1)');
    const dearest = (await pages.get('/models?view=dearest', admin)).html;
    expect(dearest).toMatch(/<a href="\/jobs\/\d+">nightly<\/a>/);
    expect(dearest).toMatch(/[\d,]+\.\d\d USD/);
    for (const path of ['?view=x&page=0', '?page=99', '?view[]=slowest&text[a]=1']) {
      expect((await pages.get(`/models${path}`, admin)).status, path).toBe(200);
    }
    expect((await pages.get('/models?node=model.shop.none', admin)).status).toBe(404);
  });

  it('finds runs by what went wrong, as far as it was measured', async () => {
    const list = async (text: string) =>
      Array.from((await pages.get(`/?text=${text}`, admin)).html.matchAll(/href="\/runs\/(\d+)"/g), ([, id]) => id);
    expect([await list('NONEXISTENT_COLUMN'), await list('nonexistent_row')]).toEqual([['1001'], []]);
    const runs = '/api/v2/accounts/10001/runs';
    const { body } = await pages.api.server.ask('GET', `${runs}?text=nonexistent_column`, admin);
    expect(body).toMatchObject({ data: [{ id: 1001 }], extra: { filters: { text: 'nonexistent_column' } } });
  });

  it('says to who has no run how to send the first one', async () => {
    const { html } = await pages.get('/', passthrough);
    // Without a token it would be a run of the first account.
    expect(html).toContain('RUN_BRIDGE_TOKEN=$TOKEN run-bridge exec --to http://127.0.0.1:4318 -- dbt build');
    expect(html).toContain(
      'OTEL_EXPORTER_OTLP_ENDPOINT=http://127.0.0.1:4318 OTEL_EXPORTER_OTLP_HEADERS=&quot;Authorization=Bearer $TOKEN&quot; dbt build',
    );
  });
});

describe('a run that the database can never keep', () => {
  it('is named by the list of runs, the API and the health of the program, to its own account', async () => {
    const { server, measuring, dataFolder, traceIds } = pages.api;
    const of = '/api/run-bridge/v1/set-aside-runs';
    expect(await server.ask('GET', of, admin)).toMatchObject({ status: 200, body: { data: [] } });
    expect((await pages.get('/', admin)).html).not.toContain('set aside');

    const traceId = traceIds[0] ?? '';
    const summary = readFileSync(join(dataFolder, 'runs', traceId, 'run.json'), 'utf8');
    const lost = parseTraceId('a'.repeat(32));
    if (lost === undefined) throw new Error('no trace id');
    const row = { traceId: lost, firstSeenUnixMs: 1_000, lastSeenUnixMs: 2_000, logBytes: 7, parquetBytes: 7 };
    await server.state.runs.save([{ ...row, state: 'finished', summary }]);
    await server.state.invocations.setAside([lost]);
    measuring.notes.lookAgain();
    await untilTurned(() => measuring.notes.setAsideCount === 1);

    const reason = 'The database cannot keep it: a number or a text of it is too large.';
    const { html } = await pages.get('/', admin);
    for (const part of ['1 run set aside', `trace ${lost}`, reason]) expect(html).toContain(part);
    expect(await server.ask('GET', of, admin)).toMatchObject({
      status: 200,
      body: {
        data: [
          {
            ...{ trace_id: lost, command: expect.stringMatching(/^dbt build/), reason },
            ...{ first_seen_at: '1970-01-01T00:00:01.000Z', last_seen_at: '1970-01-01T00:00:02.000Z' },
          },
        ],
      },
    });
    expect(measuring.notes.health()).toEqual({ ready: true, details: { setAsideCount: 1 } });
    expect((await pages.get('/', passthrough)).html).not.toContain('set aside');
    expect(await server.ask('GET', of, passthrough)).toMatchObject({ status: 200, body: { data: [] } });
  });
});

describe('the page of a run', () => {
  it('says how it ended and why before anything else, then what failed', async () => {
    const { html } = await pages.get('/runs/1001', admin);
    const order = [
      ...['Failed after', '1 error, 2 failed', 'dbt build --select broken+ ut_target+ 1+status_strict'],
      ...['1 node failed with an error', 'Binder Error: Referenced column', 'Error in line', 'nonexistent_column from'],
      ...['skipped because of it', '2 tests failed', '1 row(s) differ', 'Download OTel log (Parquet)'],
      ...['<dt>Trace</dt>', 'id="time"', 'id="critical-path"', 'id="slowest"', 'id="steps"'],
    ];
    const places = order.map((part) => html.indexOf(part));
    expect(places.every((place) => place > 0)).toBe(true);
    expect(places).toEqual([...places].sort((a, b) => a - b));
    // It has a word for that in its heading, and the duration as well.
    expect(html).not.toMatch(/Executed with errors|<dt>Duration/);
    expect(html).toContain(
      'href="/api/v2/accounts/10001/runs/1001/artifacts/metadata/telemetry-1-otel.parquet?step=1"',
    );
  });

  it('shows texts whole to who may read artifacts, which have them as well', async () => {
    const { html } = await pages.get('/runs/1003', admin);
    expect(html).toContain('It said &#39;a secret&#39;');
  });

  it('is made without values for who may not read artifacts, and the cause stays', async () => {
    const { catalog } = pages.api.measuring;
    const steps = await catalog.stepsOf(FIRST_ACCOUNT_ID, [1001, 1003]);
    const seen = async (runId: number, permission: PermissionSet) => {
      const run = await catalog.findRun(FIRST_ACCOUNT_ID, runId);
      if (run === undefined) throw new Error(`no run ${runId}`);
      const caller = { permission, accountId: FIRST_ACCOUNT_ID, tokenId: 1 };
      const own = steps.filter((step) => step.runId === runId);
      const { statusMessage, sections } = await readRunPageModel(run, own, caller, {
        ...pages.api.measuring,
        redaction: 'literals',
      });
      return [statusMessage, ...sections.flatMap(({ troubles }) => troubles).map((trouble) => JSON.stringify(trouble))];
    };
    expect(await seen(1003, 'read_only')).toEqual([expect.stringContaining("It said 'a secret'")]);
    expect(await seen(1003, 'webhooks_only')).toEqual([expect.stringMatching(/^It \?(?!.*secret)/)]);
    const cause = expect.stringContaining('nonexistent_column');
    const [said, first, ...others] = await seen(1001, 'webhooks_only');
    expect([said, first]).toEqual(['Executed with errors', cause]);
    // Locations are no values; rows are.
    expect(first).toContain('"location":"models/marts/broken.sql"');
    expect(others.join()).not.toMatch(/\b11\b.*\b10\b/);
  });

  it('is found where the hosted platform has it, as the API links to it', async () => {
    const { body } = await pages.api.server.ask('GET', '/api/v2/accounts/10001/runs/1001/', admin);
    const { data } = z.object({ data: z.looseObject({ href: z.string() }) }).parse(body);
    expect(data.href.startsWith(`${pages.origin}/deploy/10001/`)).toBe(true);
    const path = data.href.slice(pages.origin.length);
    const { status, headers } = await pages.get(`${path}/`, admin);
    expect([status, headers.location]).toEqual([303, '/runs/1001']);
    const stranger = await pages.get(path);
    expect(stranger.status).toBe(401);
    expect(stranger.html).toContain(`name="to" value="${path}"`);
    for (const other of ['/deploy/1/projects/2001/runs/1001', '/deploy/10001/projects/9/runs/1001', `${path}9`]) {
      expect((await pages.get(other, admin)).status, other).toBe(404);
    }
  });

  it('names its trace, and links to where that can be looked at', async () => {
    const { html } = await pages.get('/runs/1001', admin);
    const [traceId = ''] = pages.api.traceIds;
    expect(html).toContain(`<code>${traceId.replace(/(.{8})(.{4})(.{4})(.{4})/, '$1-$2-$3-$4-')}</code>`);
    expect(html).toContain(`<a href="http://127.0.0.1:16686/trace/${traceId}" rel="noreferrer">jaeger</a>`);
  });

  it('shows nothing of another account', async () => {
    for (const path of ['/runs/1001', '/runs/0', '/runs/x', '/runs/99999999999999999999', '/webhooks/wsu_a']) {
      expect((await pages.get(path, passthrough)).status, path).toBe(404);
    }
    for (const html of [(await pages.get('/', passthrough)).html, (await pages.get('/webhooks', passthrough)).html]) {
      expect(html).not.toMatch(/nightly|hooks\.slack/);
    }
  });
});

describe('the artifacts of a run', () => {
  const sql = `select '${SCRIPT}' as x\n`;
  beforeAll(async () => {
    const store = new FolderArtifactStore(pages.api.dataFolder);
    const put = async (path: string, text: string | Buffer) => {
      const parsed = parseArtifactPath(path);
      if (parsed === undefined) throw new Error(path);
      await store.put({ runId: 1001, stepIndex: 1, path: parsed }, Readable.from([Buffer.from(text)]));
    };
    await put('compiled/shop/<b>.sql', sql);
    await put('compiled/shop/long.sql', `${'x'.repeat(300 * 1024)}END`);
    await put('compiled/shop/bytes.txt', Buffer.from([0, 1, 2]));
    await put('empty.json', '');
  });

  it('are opened folder by folder, with the sizes of their files', async () => {
    const { status, html } = await pages.get('/runs/1001/artifacts', admin);
    expect(status).toBe(200);
    expect(html).toContain('href="/runs/1001/artifacts/compiled?step=1">compiled/</a>');
    expect(html).toMatch(/artifacts\/empty.json\?step=1">empty.json<\/a> <span class="soft">0 bytes/);
    expect(html).not.toContain('long.sql');
    // It has a folder alone, so that one is opened.
    const inner = (await pages.get('/runs/1001/artifacts/compiled?step=1', admin)).html;
    expect(inner).toContain('<a href="/runs/1001/artifacts/compiled?step=1">compiled</a> / shop');
    expect(inner).toContain('href="/runs/1001/artifacts/compiled/shop/%3Cb%3E.sql?step=1">&lt;b&gt;.sql</a>');
    expect(inner).toMatch(/long.sql<\/a> <span class="soft">300 KiB/);
    expect((await pages.get('/runs/1001/artifacts/metadata?step=1', admin)).html).toContain(
      '/artifacts/metadata/telemetry-1-otel.parquet?step=1">telemetry-1-otel.parquet</a>',
    );
  });

  it('stand on several pages where a folder has many', async () => {
    const folder = join(pages.api.dataFolder, '1002', '1', 'many');
    mkdirSync(folder, { recursive: true });
    for (let number = 1_001; number <= 1_501; number++) writeFileSync(join(folder, `${number}.sql`), '');
    const first = (await pages.get('/runs/1002/artifacts/many?step=1', admin)).html;
    expect(first).toContain('501 files, page 1 of 2');
    expect(first).not.toContain('1501.sql');
    expect(first).toContain('href="/runs/1002/artifacts/many?step=1&amp;page=2"');
    expect((await pages.get('/runs/1002/artifacts/many?step=1&page=2', admin)).html).toContain('1501.sql');
    rmSync(folder, { recursive: true });
  });

  it('are shown as text as far as they are text, and not too long', async () => {
    const shown = async (name: string) => (await pages.get(`/runs/1001/artifacts/${name}?step=1`, admin)).html;
    const html = await shown('compiled/shop/%3Cb%3E.sql');
    expect(html).toContain('&lt;script&gt;');
    expect(html).not.toContain(SCRIPT);
    const long = await shown('compiled/shop/long.sql');
    expect(long).toContain('These are its first 256 KiB of 300 KiB.');
    expect(long).not.toContain('END');
    for (const name of ['compiled/shop/bytes.txt', 'metadata/telemetry-1-otel.parquet'])
      expect(await shown(name)).toContain('This file is not text');
    expect(await shown('empty.json')).toContain('<pre></pre>');
    for (const name of ['none.sql', '..%2Fstate.db', 'none', 'compiled/none']) {
      expect((await pages.get(`/runs/1001/artifacts/${name}?step=1`, admin)).status, name).toBe(404);
    }
  });

  it('are downloaded together as a zip that others read', async () => {
    const { status, headers, body } = await pages.get('/runs/1001/artifacts.zip?step=1', admin);
    expect([status, headers['content-disposition']]).toEqual([200, 'attachment; filename=run-1001-step-1.zip']);
    const files = unzipSync(body);
    const names = ['bytes.txt', 'long.sql', '<b>.sql'].map((name) => `compiled/shop/${name}`);
    const telemetry = 'metadata/telemetry-1-otel.parquet';
    expect(Object.keys(files).sort()).toEqual([...names, 'empty.json', telemetry].sort());
    expect(Buffer.from(files['compiled/shop/<b>.sql'] ?? []).toString()).toBe(sql);
    const parquet = readFileSync(join(pages.api.dataFolder, 'runs', pages.api.traceIds[0] ?? '', 'telemetry.parquet'));
    expect(parquet.equals(Buffer.from(files[telemetry] ?? []))).toBe(true);
  });

  it('say what to do where there are none', async () => {
    const { html } = await pages.get('/runs/1003/artifacts', admin);
    expect(html).toContain('run-bridge exec -- dbt build');
  });
});

describe('where the time of a run went', () => {
  it('is a bar with a sentence, what runs are compared by, and the critical path with shares', async () => {
    const { html } = await pages.get('/runs/1002', admin);
    expect(html).toContain('<h2 id="time">Where the 462 ms went</h2>');
    expect(html).toMatch(/<svg class="parts"[^>]* role="img" aria-label="33 % the rest, 32 % parsing, 20 % waiting/);
    const [, bar = ''] = /<svg class="parts"[^>]*>(.*?)<\/svg>/s.exec(html) ?? [];
    const widths = Array.from(bar.matchAll(/ width="([\d.]+)"/g), ([, width]) => Number(width));
    expect(widths.reduce((sum, width) => sum + width, 0)).toBeCloseTo(1_000, -1);
    for (const fact of [
      'Wall clock',
      'At work on the critical path',
      'Nodes at a time',
      'Longest node',
      'Begun last',
    ]) {
      expect(html).toContain(`<dt>${fact}</dt>`);
    }
    const [, path = ''] = /id="critical-path"(.*?)<\/section>/s.exec(html) ?? [];
    const shares = Array.from(path.matchAll(/>([\d.]+) %</g), ([, share]) => Number(share));
    expect(shares.reduce((sum, share) => sum + share, 0)).toBeCloseTo(100, -0.5);
    expect(html).toContain('Found by times: what ended last before each began');
  });

  it('follows what nodes depend on where a step left its manifest, for who may read that', async () => {
    const own = await PageServer.open(['build-mixed']);
    try {
      const { server, dataFolder } = own.api;
      const store = new FolderArtifactStore(dataFolder);
      const key = { runId: 1001, stepIndex: 1, path: 'manifest.json' as ArtifactPath };
      await store.put(key, Readable.from([readFileSync('test/fixture/manifest.json')]));
      const reader = await server.token('admin');
      for (const path of ['/runs/1001', '/runs/1001/timeline']) {
        expect((await own.get(path, reader)).html).toContain('Found by what nodes depend on');
        expect((await own.get(path, await server.token('webhooks_only'))).status).toBe(403);
      }
      expect((await own.get('/runs/1001/timeline', reader)).html).toMatch(
        /<svg class="concurrency"[^>]* aria-label="Nodes at a time: at most 8 at work, \d+ waiting for a thread/,
      );
    } finally {
      await own.close();
    }
  });
});

describe('the timeline of a run', () => {
  const Timeline = z.object({
    lengthMs: z.number(),
    phases: z.array(z.array(z.object({ name: z.string() }))),
    nodes: z.array(z.object({ id: z.string(), queries: z.array(z.number()) })),
    groups: z.array(
      z.object({
        name: z.string(),
        lanes: z.array(z.array(z.number())),
        crowds: z.array(z.object({ start: z.number() })),
      }),
    ),
  });
  const timeline = async (query = '') => {
    const { status, html } = await pages.get(`/runs/1001/timeline.json${query}`, admin);
    expect(status).toBe(200);
    expect(html).not.toContain('nonexistent_column not');
    return Timeline.parse(JSON.parse(html));
  };
  const piecesIn = (lane: readonly number[]) =>
    Array.from({ length: lane.length / 3 }, (_, at) => {
      const [node = -1, start = -1, end = -1] = lane.slice(3 * at);
      return { node, start, end };
    });

  it('has its phases, nodes and queries in lanes that do not overlap, and nothing of texts', async () => {
    const { lengthMs, phases, nodes, groups } = await timeline();
    expect(phases.flat().map(({ name }) => name)).toContain('render');
    expect(nodes).toHaveLength(21);
    expect(groups).toMatchObject([{ name: '', crowds: [] }]);
    const drawn = new Set<number>();
    for (const lane of groups.flatMap(({ lanes }) => lanes)) {
      for (const [at, { node, start, end }] of piecesIn(lane).entries()) {
        drawn.add(node);
        expect(start).toBeGreaterThanOrEqual(piecesIn(lane)[at - 1]?.end ?? 0);
        expect(end).toBeGreaterThanOrEqual(start);
        expect(end).toBeLessThanOrEqual(lengthMs);
      }
    }
    expect([...drawn].sort((a, b) => a - b)).toEqual(nodes.map((_, at) => at));
    const pieces = groups.flatMap(({ lanes }) => lanes.flatMap(piecesIn));
    for (const [at, { queries }] of nodes.entries()) {
      const own = pieces.filter(({ node }) => node === at);
      const isWithin = (ms: number) => own.some(({ start, end }) => ms >= start && ms <= end);
      expect(queries.every(isWithin), nodes[at]?.id).toBe(true);
    }
    expect(nodes.some(({ queries }) => queries.length > 0)).toBe(true);
  });

  it('is grouped by what its nodes have in common', async () => {
    const names = async (by: string) => (await timeline(`?by=${by}`)).groups.map(({ name }) => name).sort();
    expect(await names('type')).toEqual(expect.arrayContaining(['model', 'test', 'unit test']));
    expect(await names('folder')).toContain('models');
    expect(await names('phase')).toEqual(expect.arrayContaining(['render', 'run']));
    expect(await names('none')).toEqual(['']);
  });
});

describe('the log records of a run', () => {
  const messagesOf = (html: string) => html.match(/id="line-\d+"/g) ?? [];

  it('are shown from INFO on, all of them when asked, and filtered by severity, text and node', async () => {
    const { html } = await pages.get('/runs/1001/logs', admin);
    expect(html).toContain('a user warning from broken');
    expect(html).not.toContain('Writing runtime');
    const all = messagesOf((await pages.get('/runs/1001/logs?severity=trace', admin)).html);
    expect(all.length).toBeGreaterThan(messagesOf(html).length);
    const errors = await pages.get('/runs/1001/logs?severity=error', admin);
    expect(errors.html).toContain('Binder Error: Referenced column &quot;nonexistent_column&quot; not found');
    const one = await pages.get('/runs/1001/logs?severity=debug&text=RUNTIME&node=model.shop.stg_orders', admin);
    expect(messagesOf(one.html)).toHaveLength(1);
    expect(one.html).toContain('model stg_orders');
    expect((await pages.get('/runs/1001/logs?text=nowhere', admin)).html).toContain('No log record is like that');
  });

  it('lead to the page where each stands among the others', async () => {
    const { html } = await pages.get('/runs/1001/logs?severity=error', admin);
    const [, path = '', id = ''] = /href="([^"]*severity=trace[^"]*)#(line-\d+)"/.exec(html) ?? [];
    expect((await pages.get(path.replaceAll('&amp;', '&'), admin)).html).toContain(`<tr id="${id}">`);
  });

  it('are shown and found by text without their literals where somebody may not read artifacts', async () => {
    const { catalog, measures } = pages.api.measuring;
    const steps = await catalog.stepsOf(FIRST_ACCOUNT_ID, [1001]);
    const filter = { severity: 'trace', node: '', isNewestFirst: false, page: 1, step: null } as const;
    const seen = async (level: 'off' | 'literals', text: string) => {
      const redactor = new Redactor(level);
      const { lines } = await findLines(await measures.logsOf(steps, redactor), { ...filter, text }, redactor);
      return lines.map((line) => line.text).join('\n');
    };
    expect(await seen('off', '2.0.0-alpha')).toBe('dbt-core 2.0.0-alpha.4');
    expect(await seen('literals', '2.0.0-alpha')).toBe('');
    expect(await seen('literals', 'nonexistent_column')).toContain('Binder Error: Referenced column');
  });

  it('are given as text, newest first where that was asked for', async () => {
    const { html, headers } = await pages.get('/runs/1001/logs.txt?severity=info&order=newest', admin);
    expect(headers['content-type']).toBe('text/plain; charset=utf-8');
    expect(html).toMatch(/^ +\d+\.\d{3} {2}ERROR {2}model\.shop\..*: Database Error in model broken/m);
    const times = Array.from(html.matchAll(/^ +(\d+\.\d+)/gm), ([, time]) => Number(time));
    expect(times.length).toBeGreaterThan(1);
    expect(times).toEqual([...times].sort((a, b) => b - a));
  });

  it('stand beside the end of what the command wrote, without colours, and lead to all of it', async () => {
    expect((await pages.get('/runs/1002/logs', admin)).html).not.toContain('of the command');
    const store = new FolderArtifactStore(pages.api.dataFolder);
    const put = (path: ArtifactPath, text: string) =>
      store.put({ runId: 1002, stepIndex: 1, path }, Readable.from([Buffer.from(text)]));
    await put(COMMAND_OUTPUTS.stdout, `${'cut off\n'.repeat(9_000)}\u001b[31mred\u001b[0m\rover ${SCRIPT}\n`);
    await put(COMMAND_OUTPUTS.stderr, 'a warning\n');
    const { html } = await pages.get('/runs/1002/logs', admin);
    expect(html).toMatch(/<pre>cut off\n[^<]*\nred\nover &lt;script&gt;/);
    expect(html).toContain('38 KiB before it are not shown.');
    expect(html).toContain('<a href="/runs/1002/artifacts/stdout.txt?step=1">stdout.txt</a>');
    expect(html).toContain('<pre>a warning</pre>');
    for (const path of [COMMAND_OUTPUTS.stdout, COMMAND_OUTPUTS.stderr])
      await store.remove({ runId: 1002, stepIndex: 1, path });
  });

  it('stand beside what a job kept of its command, without literals where somebody may not read artifacts', async () => {
    const { catalog } = pages.api.measuring;
    const steps = await catalog.stepsOf(FIRST_ACCOUNT_ID, [1001]);
    const none = () => Promise.reject(new ArtifactError('unavailable', 'nothing answers'));
    const artifacts = { list: none, listFolder: none, files: none, stat: none, open: none };
    const kept = { text: "where name = 'a secret'\n", droppedBytes: 7 };
    const seen = (level: 'off' | 'literals', output?: typeof kept) =>
      outputsOf(
        { steps, step: steps[0] ?? null },
        { artifacts, jobs: { outputOf: async () => output }, logger: silentLogger },
        new Redactor(level),
      );
    expect(await seen('off', kept)).toMatchObject([{ text: "where name = 'a secret'", omittedBytes: 7, path: null }]);
    expect(JSON.stringify(await seen('literals', kept))).not.toContain('secret');
    // Where artifacts cannot be read just now, the log records are shown all the same.
    expect(await seen('off')).toEqual([]);
  });
});

describe('the comparison of two runs', () => {
  it('has outcomes that changed first, then times, new and gone nodes', async () => {
    const { status, html } = await pages.get('/runs/1001/compare?with=1002', admin);
    expect(status).toBe(200);
    const titles = Array.from(html.matchAll(/<h2 id="(\w+)-0">/g), ([, title]) => title);
    expect(titles.length).toBeGreaterThan(0);
    const order = ['changed', 'slower', 'added', 'gone', 'faster'];
    expect(titles).toEqual(order.filter((title) => titles.includes(title)));
    expect(html).toContain('<option value="1002" selected');
    expect(html).toMatch(/It took .* (?:more|less) than #1002\./);
  });

  it('is with the last run before it that did well, unless another is named', async () => {
    const { html } = await pages.get('/runs/1002/compare', admin);
    expect(html).toMatch(/<option value="\d+" selected|There is no earlier run of this job/);
    const same = await pages.get('/runs/1002/compare?with=1002', admin);
    expect(same.html).toContain('It took as long as #1002. Every node ended as before');
    for (const named of ['9999', 'x']) {
      expect((await pages.get(`/runs/1002/compare?with=${named}`, admin)).html).toContain(`There is no run ${named}.`);
    }
  });
});

describe('the graph of a run', () => {
  it('has what was skipped because of a failure, and says how to have the rest', async () => {
    const { status, html } = await pages.get('/runs/1001/graph', admin);
    expect(status).toBe(200);
    expect(html).toContain('is kept of this step');
    expect(html).toContain('/api/run-bridge/v1/runs/1001/artifacts/manifest.json?step=1');
    expect(html).toContain('<path class="hot"');
    expect(html).toContain('model after_broken');
    expect(html).not.toContain('model stg_orders');
    expect((await pages.get('/runs/1001/graph?text=after_broken', admin)).html).toContain('value="after_broken"');
  });

  it('has the tests of a model as one box with its counts, by a manifest', async () => {
    const { html: list } = await pages.get('/runs/1001/nodes?outcome=failed', admin);
    const test = /title="(test\.[^"]+)" class="quiet-link"/.exec(list)?.[1] ?? '';
    const store = new FolderArtifactStore(pages.api.dataFolder);
    const key = { runId: 1001, stepIndex: 1, path: 'manifest.json' as ArtifactPath };
    const nodes = { [test]: { attached_node: 'model.shop.stg_orders' }, 'model.shop.stg_orders': {} };
    await store.put(key, Readable.from([Buffer.from(JSON.stringify({ nodes }))]));
    const { html } = await pages.get('/runs/1001/graph', admin);
    expect(html).toContain('<title>tests of model.shop.stg_orders: 1 failed</title>');
    expect(html).toContain('✗ 1 of 1 tests: stg_orders</text>');
    expect(html).toContain(`<a class="broken" href="/runs/1001/nodes?node=${encodeURIComponent(test)}">`);
    expect((await pages.get(`/runs/1001/graph?text=${test}`, admin)).html).toContain('1 of 1 tests: stg_orders');
    await store.remove(key);
  });
});

describe('the nodes of a run', () => {
  const idsOf = (html: string) =>
    Array.from(html.matchAll(/title="([^"]+)" class="quiet-link"/g), ([, id]) => id ?? '');

  it('are all there, and filtered and sorted by the address', async () => {
    const all = idsOf((await pages.get('/runs/1001/nodes', admin)).html);
    expect(all).toHaveLength(21);
    const bad = idsOf((await pages.get('/runs/1001/nodes?outcome=bad', admin)).html);
    expect(bad).toHaveLength(3);
    const named = idsOf((await pages.get('/runs/1001/nodes?text=STG_&sort=name', admin)).html);
    expect(named.length).toBeGreaterThan(1);
    expect(named).toEqual([...named].sort());
    const { html } = await pages.get('/runs/1001/nodes?sort=work', admin);
    expect(html).toContain('aria-sort="descending"');
    for (const path of ['?outcome=x&sort=y&page=0&step=z', '?page=99', '?outcome[]=bad&text[a]=1']) {
      expect((await pages.get(`/runs/1001/nodes${path}`, admin)).status, path).toBe(200);
    }
  });

  it('are shown one by one with all that is known of them', async () => {
    const bad = idsOf((await pages.get('/runs/1001/nodes?outcome=bad', admin)).html);
    const [id = ''] = bad.filter((one) => one.startsWith('unit_test.'));
    const { html } = await pages.get(`/runs/1001/nodes?node=${id}`, admin);
    expect(html).toContain('expected and actual rows differ');
    expect(html).toContain('<th scope="row">render</th>');
    expect((await pages.get('/runs/1001/nodes?node=model.shop.none', admin)).html).toContain('There is no node');
  });

  it('have a panel that says how they went, what is around them and what to run, also where they succeeded', async () => {
    const id = 'model.shop.stg_orders';
    const store = new FolderArtifactStore(pages.api.dataFolder);
    const keep = (path: string, text: string) =>
      store.put({ runId: 1001, stepIndex: 1, path: path as ArtifactPath }, Readable.from([Buffer.from(text)]));
    const nodes = {
      [id]: { depends_on: { nodes: ['source.shop.raw.orders'] } },
      'model.shop.revenue': { depends_on: { nodes: [id] } },
      'test.shop.not_null.1': { depends_on: { nodes: [id] } },
    };
    await keep('manifest.json', JSON.stringify({ nodes }));
    await keep('compiled/shop/models/staging/stg_orders.sql', `select '${SCRIPT}'\n`);
    const { html } = await pages.get(`/runs/1001/nodes?step=1&outcome=success&node=${id}`, admin);
    expect(html).toMatch(/<h2 id="node" class="name">model stg_orders <span class="mark good">/);
    expect(html).toContain('data-copy="dbt build --select stg_orders"');
    for (const page of [`timeline?step=1&amp;node=${id}`, `graph?step=1&amp;text=${id}`, `logs?step=1&amp;node=${id}`])
      expect(html).toContain(`href="/runs/1001/${page}`);
    expect(html).toContain(`href="/models?node=${id}"`);
    expect(html).toMatch(/aria-label="Phases of the node".*<th scope="row">run<\/th>/s);
    expect(html).toMatch(/<h3>\d quer(y|ies)<\/h3>/);
    expect(html).toMatch(/<h3>Depends on \(1\)<\/h3><ul class="tree"><li class="name soft">source raw.orders/);
    expect(html).toMatch(/<h3>Tests \(1\)<\/h3>/);
    expect(html).toMatch(/<h3>Used by \(1\)<\/h3><ul class="tree"><li><a href="[^"]*model.shop.revenue"/);
    expect(html).toContain('Compiled SQL, 1 line');
    expect(html).toContain('&lt;script&gt;');
    // The address of the list is that of before, in the rows and behind Close.
    expect(html).toContain('href="/runs/1001/nodes?step=1&amp;outcome=success" data-panel="close"');
    expect(html).toMatch(
      /outcome=success&amp;node=model.shop.stg_orders" title="[^"]+" class="quiet-link" data-panel="open" aria-current/,
    );
    for (const path of ['manifest.json', 'compiled/shop/models/staging/stg_orders.sql'])
      await store.remove({ runId: 1001, stepIndex: 1, path: path as ArtifactPath });
  });
});

it.each([
  ...[
    '/',
    '/runs/1001',
    '/runs/1001/nodes',
    '/runs/1001/timeline',
    '/runs/1003',
    '/jobs',
    '/jobs/4002',
    '/webhooks',
    '/webhooks/wsu_a',
    `/?text=${encodeURIComponent(SCRIPT)}`,
  ],
  `/query?${new URLSearchParams({ sql: `SELECT '${SCRIPT.replaceAll("'", "''")}' AS name` })}`,
])('what comes from outside stays text on %s, and a policy forbids what would not', async (path) => {
  const { html, headers } = await pages.get(path, admin);
  expect(html).toContain('&lt;script&gt;alert(1)&lt;/script&gt;&quot;&#39;&amp;');
  expect(html).not.toContain('<script>');
  expect(html).not.toMatch(/ style=| on\w+=/);
  expect(headers['content-security-policy']).toMatch(/^default-src 'none'; style-src 'self'; script-src 'self';/);
  expect(headers).toMatchObject({ 'x-content-type-options': 'nosniff', 'cache-control': 'no-store' });
});

describe('the settings', () => {
  it('show health, destinations, storage, tokens and versions, and no secret', async () => {
    const owner = tokens.get('account_admin') ?? '';
    const { status, html } = await pages.get('/settings', owner);
    expect(status).toBe(200);
    for (const text of [
      'not ready',
      'the disk is full; free some space',
      'connection refused &lt;script&gt;',
      'http://tempo:4318',
      '1 min 30 s',
      'Telemetry of other services',
      'webhooks only',
      '20.19.0',
    ]) {
      expect(html).toContain(text);
    }
    expect(html).not.toContain(owner);
    const { hash } = (await pages.api.server.state.tokens.list())[0] ?? { hash: '' };
    expect(html).not.toContain(hash);
  });

  it('measure what is kept once a minute, however often they are asked for', async () => {
    const owner = tokens.get('account_admin');
    const { dataFolder, server, traceIds } = pages.api;
    server.clock.advance(60_000);
    const { html: before } = await pages.get('/settings', owner);
    expect(before).toContain('Sizes are at most a minute old.');
    const path = join(dataFolder, 'runs', traceIds[0] ?? '', 'large');
    writeFileSync(path, '');
    truncateSync(path, 5 * 2 ** 30);
    expect((await pages.get('/settings', owner)).html).not.toContain('5 GiB');
    server.clock.advance(60_000);
    expect((await pages.get('/settings', owner)).html).toContain('5 GiB');
    rmSync(path);
  });

  it('say what a destination answered to a test, to who runs the bridge', async () => {
    const owner = tokens.get('account_admin');
    expect((await pages.get('/settings', owner)).html).toContain('Send a test to tempo');
    const { status, html } = await pages.post('/settings/test', owner, { destination: 'tempo' });
    expect(status).toBe(200);
    expect(html).toContain('Span: taken, HTTP 200 after 12 ms');
    expect(html).toContain('Log record: HTTP 404 after 7 ms: no &lt;script&gt; here');
    expect(html).toContain('0af7651916cd43dd8448eb211c80319c');
    // Its address is no page: nothing asks for it again.
    expect(html).not.toContain('data-live');
    expect((await pages.post('/settings/test', owner, { destination: 'none' })).status).toBe(404);
    expect((await pages.post('/settings/test', passthrough, { destination: 'tempo' })).status).toBe(404);
    expect((await pages.post('/settings/test', admin, { destination: 'tempo' })).status).toBe(403);
    const elsewhere = { Origin: 'https://elsewhere.example', 'Sec-Fetch-Site': 'cross-site' };
    expect((await pages.post('/settings/test', owner, { destination: 'tempo' }, elsewhere)).status).toBe(403);
  });

  it('show another account its own tokens, and nothing of the machine', async () => {
    const { html } = await pages.get('/settings', passthrough);
    expect(html).toContain('account admin');
    for (const text of ['webhooks only', 'http://tempo:4318', '/data']) expect(html).not.toContain(text);
  });

  it('are named in the navigation of who may see them', async () => {
    expect((await pages.get('/', tokens.get('account_admin'))).html).toContain('href="/settings"');
    expect((await pages.get('/', admin)).html).not.toContain('href="/settings"');
  });
});

describe('deleting a run', () => {
  it('says what goes and asks, and a link on its page leads there for who may', async () => {
    const { html } = await pages.get('/runs/1003', admin);
    expect(html).toContain('href="/runs/1003/delete"');
    expect((await pages.get('/runs/1003', tokens.get('developer'))).html).not.toContain('/delete');
    const asked = await pages.get('/runs/1003/delete', admin);
    expect(asked.html).toContain('Delete run #1003?');
    expect(asked.html).toContain('&lt;script&gt;alert(1)');
    expect((await pages.get('/runs/1003/delete', passthrough)).status).toBe(404);
  });

  it('shows why a run stays, without a button', async () => {
    const { status, html } = await pages.get('/runs/1004/delete', admin);
    expect([status, html.includes('Run 1004 is still going on'), html.includes('>Delete<')]).toEqual([
      409,
      true,
      false,
    ]);
    expect(await pages.post('/runs/1004/delete', admin)).toMatchObject({
      status: 409,
      html: expect.stringContaining('still going on'),
    });
  });

  it('removes it from its page and the list', async () => {
    const own = await PageServer.open(['build-clean', 'parse']);
    const token = await own.api.server.token('admin');
    // The samples' rows of traces, which the tracker writes.
    const { state } = own.api.server;
    await state.runs.save(own.api.traceIds.map((traceId) => rowOf(traceId, 1_000)));
    expect(await own.post('/runs/1001/delete', token)).toMatchObject({ status: 303, headers: { location: '/' } });
    expect((await own.get('/runs/1001', token)).status).toBe(404);
    expect((await own.get('/', token)).html).not.toContain('/runs/1001');
    expect((await own.get('/runs/1002', token)).status).toBe(200);
    await own.close();
  });
});

describe('the run of a trace', () => {
  const READER = () => tokens.get('read_only');
  const trace = () => pages.api.traceIds[1] ?? '';

  it('is led to by its id, as a query’s comment has it, in any spelling', async () => {
    const dashed = trace().replace(/^(.{8})(.{4})(.{4})(.{4})/, '$1-$2-$3-$4-');
    for (const name of [trace(), trace().toUpperCase(), dashed, `${trace()}?span=00f067aa0ba902b7`]) {
      const { status, headers } = await pages.get(`/runs/by-trace/${name}`, READER());
      expect([status, headers.location], name).toEqual([303, '/runs/1002']);
    }
  });

  it.each([
    ['a'.repeat(32), `There is no run with the trace ${'a'.repeat(32)}`],
    ['0'.repeat(32), 'That is no trace id'],
    ['1002', 'That is no trace id'],
    [encodeURIComponent(SCRIPT), 'That is no trace id'],
  ])('that is not there is a page that says so: %s', async (name, text) => {
    const { status, html } = await pages.get(`/runs/by-trace/${name}`, READER());
    expect(status).toBe(404);
    expect(html).toContain(text);
    expect(html).not.toContain('<script>alert');
  });

  it('is another account’s as if it were not there', async () => {
    const [mine, theirs] = [
      await pages.get(`/runs/by-trace/${trace()}`, passthrough),
      await pages.get(`/runs/by-trace/${'a'.repeat(32)}`, passthrough),
    ];
    expect(mine.status).toBe(404);
    expect(mine.html.replaceAll(trace(), '')).toBe(theirs.html.replaceAll('a'.repeat(32), ''));
  });

  it('is a list where several runs share the trace', async () => {
    const { traceId, invocations } = commandNote(9);
    const second = commandNote(9, { index: 2, scope: { job: 'hourly', environment: null, project: null } });
    const { server } = pages.api;
    await server.state.invocations.note([{ traceId, invocations: [...invocations, ...second.invocations] }], 1);
    const ids = await server.state.traces.runsOf(FIRST_ACCOUNT_ID, traceId);
    expect(ids).toHaveLength(2);
    const { status, html } = await pages.get(`/runs/by-trace/${traceId}`, READER());
    expect(status).toBe(200);
    expect(html).toContain('2 runs in one trace');
    for (const id of ids) expect(html).toContain(`href="/runs/${id}"`);
  });

  it('is where somebody comes to who had to sign in first', async () => {
    const path = `/runs/by-trace/${trace()}`;
    const asked = await pages.get(path);
    expect(asked.status).toBe(401);
    expect(asked.html).toContain(`name="to" value="${path}"`);
    const { status, headers } = await pages.post('/sign-in', undefined, { token: READER() ?? '', to: path });
    expect([status, headers.location]).toEqual([303, path]);
  });
});

describe('who may look', () => {
  it.each(endpointsOf(PAGE_TABLE))('$name is for who has the right, in any session', async ({ method, path, sets }) => {
    for (const set of PERMISSION_SETS) {
      const token = tokens.get(set);
      const ask = method === 'GET' ? pages.get(filled(path), token) : pages.post(filled(path), token);
      const { status } = await ask;
      if (sets.includes(set)) expect([401, 403], set).not.toContain(status);
      else expect(status, set).toBe(403);
    }
  });

  it.each(endpointsOf(PAGE_TABLE))('$name asks for a token first', async ({ method, path }) => {
    for (const token of [undefined, 'rbt_unknown', 'x;y']) {
      pages.api.server.clock.advance(60_000);
      const ask = method === 'GET' ? pages.get(filled(path), token) : pages.post(filled(path), token);
      const { status, html } = await ask;
      expect(status).toBe(401);
      expect(html).toContain('<form method="post" action="/sign-in"');
      expect(html).not.toContain('nightly');
    }
  });

  it('keeps a good token in a cookie that no script and no other site gets, for https alone behind it', async () => {
    const signIn = (headers: Record<string, string>) =>
      pages.post('/sign-in', undefined, { token: ` ${admin}\n`, to: '/runs/1001?a=b' }, headers);
    const { status, headers } = await signIn({ 'Sec-Fetch-Site': 'same-origin' });
    expect([status, headers.location]).toEqual([303, '/runs/1001?a=b']);
    const [cookie = ''] = headers['set-cookie'] ?? [];
    expect(cookie).toMatch(
      /^run_bridge_token=rbt_[\w-]+; Max-Age=604800; Path=\/; Expires=[^;]+; HttpOnly; SameSite=Strict$/,
    );
    const secure = await signIn({ 'Sec-Fetch-Site': 'same-origin', 'X-Forwarded-Proto': 'https' });
    expect(secure.headers['set-cookie']?.[0]).toContain('; Secure');
  });

  it('takes a link once, within ten minutes, and leads away from its address', async () => {
    const { state, clock } = pages.api.server;
    const path = await makeSignInLink(state.tokens, clock, '/runs/1001');
    // Nobody has opened it yet.
    expect((await pages.get(path, undefined, { 'Sec-Purpose': 'prefetch;prerender' })).status).toBe(200);
    const opened = await Promise.all([pages.get(path), pages.get(path), pages.get(path)]);
    expect(opened.map(({ status }) => status).sort()).toEqual([303, 401, 401]);
    const first = opened.find(({ status }) => status === 303);
    expect(first?.headers).toMatchObject({
      location: '/runs/1001',
      'referrer-policy': 'no-referrer',
      'cache-control': 'no-store',
    });
    const [cookie = ''] = first?.headers['set-cookie'] ?? [];
    expect(cookie).toMatch(/^run_bridge_token=rbt_[\w-]{43}; Max-Age=604800; .*HttpOnly; SameSite=Strict$/);
    const token = /rbt_[\w-]+/.exec(cookie)?.[0] ?? '';
    expect(path).not.toContain(token);
    expect((await pages.get('/', token)).status).toBe(200);
    const spent = opened.find(({ status }) => status === 401);
    expect(spent?.html).toContain('That link no longer signs in');
    expect(spent?.headers).not.toHaveProperty('set-cookie');

    const late = await makeSignInLink(state.tokens, clock);
    clock.advance(600_000);
    expect((await pages.get(late)).status).toBe(401);
    // The secret of a link is no token.
    const unused = new URL(await makeSignInLink(state.tokens, clock), 'http://here').searchParams.get('link') ?? '';
    expect((await pages.get('/', unused)).status).toBe(401);
    pages.api.server.clock.advance(60_000);
  });

  it('leads from a link to no other server, and limits who guesses links', async () => {
    const { state, clock } = pages.api.server;
    const path = await makeSignInLink(state.tokens, clock, '//elsewhere.example');
    expect((await pages.get(path)).headers.location).toBe('/');
    const statuses = [];
    for (let at = 0; at < 25; at += 1) statuses.push((await pages.get('/sign-in?link=rbt_guess')).status);
    expect(statuses.slice(0, 10)).toEqual(Array(10).fill(401));
    expect(statuses.at(-1)).toBe(429);
    pages.api.server.clock.advance(60_000);
  });

  it.each(['//elsewhere.example', '/\\elsewhere.example', 'https://elsewhere.example', '/..//elsewhere.example', ''])(
    'leads from signing in to no other server: %j',
    async (to) => {
      const { headers } = await pages.post('/sign-in', undefined, { token: admin, to });
      expect(headers.location).toMatch(/^\/(?![/\\])/);
      const arrived = await pages.get(`/arrive?to=${encodeURIComponent(to)}`);
      expect(arrived.headers.location).toMatch(/^\/(?![/\\])/);
    },
  );

  it('limits who tries tokens, as the API does', async () => {
    const statuses = [];
    for (let at = 0; at < 25; at += 1) {
      statuses.push((await pages.post('/sign-in', undefined, { token: 'rbt_guess', to: '/' })).status);
    }
    expect(statuses.slice(0, 10)).toEqual(Array(10).fill(401));
    expect(statuses.at(-1)).toBe(429);
    pages.api.server.clock.advance(60_000);
  });

  it('leads who comes from another site on, since their browser keeps the cookie back at first', async () => {
    const { status, html } = await pages.get('/runs/1001', undefined, { 'Sec-Fetch-Site': 'cross-site' });
    expect(status).toBe(200);
    expect(html).toContain('content="0;url=/arrive?to=%2Fruns%2F1001"');
  });

  it('lets the cookie read the API from its own pages, and do nothing else there', async () => {
    const api = '/api/run-bridge/v1/webhooks';
    expect((await pages.get(api, admin, { 'Sec-Fetch-Site': 'same-origin' })).status).toBe(200);
    expect((await pages.get(api, admin)).status).toBe(200);
    expect((await pages.get(api, admin, { 'Sec-Fetch-Site': 'cross-site' })).status).toBe(401);
    expect((await pages.get(api, admin, { 'Sec-Fetch-Site': 'same-site' })).status).toBe(401);
    expect((await pages.post(`${api}/replay`, admin, {})).status).toBe(401);
  });
});

describe('forms', () => {
  it.each([
    ['another site', { 'Sec-Fetch-Site': 'cross-site', Origin: 'https://evil.example' }],
    ['a neighbour', { 'Sec-Fetch-Site': 'same-site' }],
    ['another origin, by an old browser', { Origin: 'https://evil.example' }],
    ['nowhere', { Origin: 'null' }],
    ['who says nothing', {}],
  ])('from %s do nothing', async (_who, headers) => {
    const { invocations, webhookEvents } = pages.api.server.state;
    await invocations.note([commandNote(9)], 1);
    const before = await webhookEvents.list(FIRST_ACCOUNT_ID, {
      of: { subscriptionId: 'wsu_a' },
      limit: 99,
      offset: 0,
    });
    for (const path of ['/sign-in', '/sign-out', '/webhooks/wsu_a/replay', '/webhooks/wsu_a/reactivate']) {
      const { status, headers: answered } = await pages.post(
        path,
        admin,
        { token: admin, since: '2000-01-01T00:00' },
        headers,
      );
      expect(status, path).toBe(403);
      expect(answered).not.toHaveProperty('set-cookie');
    }
    expect(
      await webhookEvents.list(FIRST_ACCOUNT_ID, { of: { subscriptionId: 'wsu_a' }, limit: 99, offset: 0 }),
    ).toEqual(before);
  });

  it('of an old browser are taken from this very server', async () => {
    expect((await pages.post('/sign-out', admin, {}, { Origin: pages.origin })).status).toBe(303);
  });
});

describe('the pages of jobs', () => {
  it('show how the latest runs of each ended, and lead to them', async () => {
    const { html } = await pages.get('/jobs', admin);
    const nightly = html.split('<tr>').find((row) => row.includes('>nightly</a>')) ?? '';
    expect(nightly).toContain('success');
    expect(nightly).toMatch(/<title>#1001: failed, 2\.\d s<\/title><rect class="bad".*#1002: success.*class="good"/s);
    expect(nightly).toMatch(/<td class="number bad">\s*<span class="nowrap">\d of \d<\/span>/);
    const href = /href="(\/jobs\/\d+)"/.exec(nightly)?.[1] ?? '';
    const job = (await pages.get(href, admin)).html;
    expect(job).toMatch(/href="\/runs\/1002">#1002<.*href="\/runs\/1001">#1001</s);
    expect((await pages.get(href, passthrough)).status).toBe(404);
  });

  it('start nothing that is not declared, and cancel nothing that is out of reach, and say why', async () => {
    const href = /href="(\/jobs\/\d+)">nightly/.exec((await pages.get('/jobs', admin)).html)?.[1];
    const started = await pages.post(`${href}/run`, admin);
    expect([started.status, started.html.includes('declare them in run-bridge.yaml')]).toEqual([409, true]);
    expect((await pages.post('/runs/1001/retry', admin)).status).toBe(409);
    expect((await pages.post('/runs/1004/cancel', admin)).html).toContain('cannot be interrupted from here');
    expect((await pages.post('/runs/1001/cancel', passthrough)).status).toBe(404);
  });
});

describe('the page of queries', () => {
  const asked = (sql: string) => pages.get(`/query?${new URLSearchParams({ sql })}`, admin);

  it('answers its own examples', async () => {
    const { html } = await pages.get('/query', admin);
    const links = Array.from(html.matchAll(/href="(\/query\?sql=[^"]+)"/g), ([, href = '']) => href);
    expect(links).toHaveLength(EXAMPLES.length + VIEW_NAMES.length);
    const counts: number[] = [];
    for (const href of links) {
      const page = await pages.get(href.replaceAll('&amp;', '&'), admin);
      expect(page.html, href).not.toContain('role="alert"');
      counts.push(Number(/<h2>(\d+) rows?/.exec(page.html)?.[1] ?? 0));
    }
    // Two runs have no flaky tests, and nothing in them got slower.
    expect(counts.filter((count) => count === 0)).toHaveLength(2);
  });

  it('shows rows and bars, and gives them as CSV', async () => {
    const sql = "SELECT unnest(['a', 'b,\"c\"']) AS name, unnest([1234.5, 20]) AS size, NULL AS nothing";
    const { status, html } = await asked(sql);
    expect(status).toBe(200);
    expect(html).toMatch(/<h2>2 rows<\/h2>.*<svg class="bars".*1,234.5.*<td class="number">20<\/td>/s);
    const csv = await pages.get(`/query.csv?${new URLSearchParams({ sql })}`, admin);
    expect(csv.html).toBe('name,size,nothing\na,1234.5,\n"b,""c""",20.0,\n');
    expect(csv.headers['content-disposition']).toBe('attachment; filename=query.csv');
  });

  const charted = async (columns: string) =>
    /<figcaption class="hint">(.*?)<\/figcaption>/.exec(
      (await asked(`SELECT unnest(['a', 'b']) AS name, ${columns} FROM (SELECT 1001 AS run_id, 12.5 AS ms)`)).html,
    )?.[1];

  it.each([
    ['run_id'],
    ['run_id AS id'],
    ['run_id AS "accountId"'],
    ['run_id AS "Run ID"'],
    ['max(run_id)'],
    ['max(run_id) AS last_run'],
    ['run_id + 1'],
    ['run_id AS run_number'],
    ['run_id AS step_index'],
    ['run_id AS vendor_code'],
    ['run_id AS job'],
    ['404 AS http_status'],
    ['run_id AS parent_span_id'],
    ['row_number() OVER ()'],
    ['2026 AS year'],
    ["year(DATE '2026-11-26')"],
    ["date_part('year', DATE '2026-11-26')"],
    ['1795221792690281654 AS start_time_unix_nano'],
  ])('draws no bars as long as what only names something: %s', async (column) => {
    const columns = column.includes('max(') ? `${column.replace('max(run_id)', 'max(run_id) OVER ()')}` : column;
    expect(await charted(columns)).toBeUndefined();
  });

  it('draws bars as long as the first amount, whatever stands before it', async () => {
    expect(await charted('run_id, run_id + 1 AS step_index, ms')).toBe('ms by name');
  });

  it.each([
    ['ms AS avg_ms'],
    ['count(run_id) OVER ()'],
    ['count(DISTINCT run_id) OVER () AS runs'],
    ['ms AS runs_per_day'],
    ['ms AS seconds_a_run'],
    ['ms AS "cost this month"'],
    ['ms AS number_of_runs'],
    ['round(ms / 10, 1)'],
    ['ms AS idle'],
  ])('draws bars as long as an amount: %s', async (column) => {
    expect(await charted(column)).toMatch(/ by name$/);
  });

  it('writes numbers that name something without separators', async () => {
    const { html } = await asked('SELECT 1001 AS run_id, 1002 AS last_run, 2026 AS year, 1003 AS rows');
    expect(Array.from(html.matchAll(/<td class="number">([^<]*)</g), ([, cell]) => cell)).toEqual([
      '1001',
      '1002',
      '2026',
      '1,003',
    ]);
  });

  it('writes CSV of which a spreadsheet takes no text for a formula, and numbers for numbers', async () => {
    const cases = [
      ["'=1+1'", "'=1+1"],
      ["'+49 30'", "'+49 30"],
      ["'@SUM(A1)'", "'@SUM(A1)"],
      ["'-2+3'", "'-2+3"],
      ["'-'", "'-"],
      ["' =1'", "' =1"],
      ["'＝1'", "'＝1"],
      ["chr(9) || '=1'", "'\t=1"],
      ["chr(13) || '=1'", "'\ufffd=1"],
      ["chr(10) || '=1'", '"\'\n=1"'],
      [`'=HYPERLINK("a,b")'`, `"'=HYPERLINK(""a,b"")"`],
      ["'a=1'", 'a=1'],
      ["'a-b'", 'a-b'],
      ['-5', '-5'],
      ['-5.25', '-5.25'],
      ['-5.25::DOUBLE', '-5.25'],
      ['-170141183460469231731687303715884105727::HUGEINT', '-170141183460469231731687303715884105727'],
      ["'-inf'::DOUBLE", '-Infinity'],
      ["['=1']", '"[""=1""]"'],
      ["{a: '-1'}", '"{""a"":""-1""}"'],
      ['NULL', ''],
    ] as const;
    const sql = `SELECT ${cases.map(([value], index) => `${value} AS c${index}`).join(', ')}, 1 AS "=a"`;
    const { html } = await pages.get(`/query.csv?${new URLSearchParams({ sql })}`, admin);
    const heads = cases.map((_, index) => `c${index}`);
    expect(html).toBe(`${[...heads, "'=a"].join(',')}\n${[...cases.map(([, cell]) => cell), '1'].join(',')}\n`);
  });

  it('gives them as Parquet, and keeps nothing of it', async () => {
    const parquet = (sql: string) => pages.get(`/query.parquet?${new URLSearchParams({ sql })}`, admin);
    const { status, headers, body } = await parquet("SELECT unnest(['a', 'b']) AS name, 1.5::DOUBLE AS size");
    expect(status).toBe(200);
    expect(headers).toMatchObject({
      'content-disposition': 'attachment; filename=query.parquet',
      'content-type': 'application/vnd.apache.parquet',
    });
    const file = new Uint8Array(body).buffer;
    expect(await parquetReadObjects({ file })).toEqual([
      { name: 'a', size: 1.5 },
      { name: 'b', size: 1.5 },
    ]);
    const refused = await parquet('SELECT nonsense');
    expect([refused.status, refused.html.includes('nonsense')]).toEqual([400, true]);
    expect(readdirSync(join(pages.api.dataFolder, 'answers'))).toEqual([]);
  });

  it.each([
    ['SELEC 1', 400, 'syntax error'],
    ["SELECT * FROM read_text('/etc/passwd')", 400, 'read_text'],
    [`SELECT '${'x'.repeat(9_000)}'`, 400, 'longer than 8,000 characters'],
  ])('says what is wrong with %.40s', async (sql, status, problem) => {
    const answer = await asked(sql);
    expect(answer.status).toBe(status);
    expect(answer.html).toMatch(/role="alert"/);
    expect(answer.html).toContain(problem);
  });
});

describe('the pages of webhooks', () => {
  it('hide what is secret in addresses', async () => {
    for (const path of ['/webhooks', '/webhooks/wsu_a', '/webhooks/wsu_chat']) {
      expect((await pages.get(path, admin)).html).not.toContain('sesame');
    }
  });

  it('show an archived one loudly: why, since when, and what waits for nobody any more', async () => {
    const { state } = pages.api.server;
    await state.subscriptions.add(subscription('gone', { eventTypes: ['job.run.completed'] }));
    await state.invocations.note([commandNote(20)], 1);
    const one = await state.subscriptions.find(FIRST_ACCOUNT_ID, 'wsu_gone');
    if (one === undefined) throw new Error('it is not there');
    const claim = { holder: 'p', nowUnixMs: 9e12, leaseUntilUnixMs: 9e12 + 1 };
    const [event] = await state.webhookEvents.claim(one, 1, claim);
    if (event === undefined) throw new Error('nothing was claimed');
    const failed = attempted(event, { next: { state: 'failed' } });
    const attempt = {
      ...failed,
      attempt: { ...failed.attempt, startedUnixMs: 1_700_000_000_000, httpStatusCode: 500, error: `it said ${SCRIPT}` },
    };
    await state.webhookEvents.finish([attempt], 'p', (standing) => ({
      standing: { ...standing, failedCount: 1_000 },
      archiveReason: '1000 deliveries in a row have failed',
    }));
    await state.invocations.note([commandNote(21)], 1);

    const { html } = await pages.get('/webhooks/wsu_gone', admin);
    expect(html).toMatch(/role="alert".*Archived since <time datetime="2023-11-14T22:13:20.012Z">/s);
    expect(html).toContain('Why: 1000 deliveries in a row have failed.');
    expect(html).toContain('answered 500 after 12 ms');
    expect(html).toContain('it said &lt;script&gt;');
    expect((await pages.get('/webhooks', admin)).html).toContain('1 subscription on this page was archived');
    // Who may not change anything gets no buttons.
    expect((await pages.get('/webhooks/wsu_gone', tokens.get('read_only'))).html).not.toContain(
      '<form method="post" action="/webhooks',
    );

    const states = async () =>
      (
        await state.webhookEvents.list(FIRST_ACCOUNT_ID, { of: { subscriptionId: 'wsu_gone' }, limit: 9, offset: 0 })
      ).items.map((each) => each.state);
    expect(await states()).toEqual(['skipped', 'failed']);
    const replayed = await pages.post('/webhooks/wsu_gone/replay', admin, { event_id: event.id });
    expect(replayed.headers.location).toBe('/webhooks/wsu_gone?done=replayed&count=1');
    expect(await states()).toEqual(['skipped', 'pending']);
    expect(pages.hooks.wakeCount).toBe(1);
    expect((await pages.get('/webhooks/wsu_gone?done=replayed&count=1', admin)).html).toContain(
      '1 event will be delivered again.',
    );
    await pages.post('/webhooks/wsu_gone/replay', admin, { since: '1970-01-01T00:00' });
    expect(await states()).toEqual(['pending', 'pending']);
    await pages.post('/webhooks/wsu_gone/reactivate', admin);
    expect(await state.subscriptions.find(FIRST_ACCOUNT_ID, 'wsu_gone')).toMatchObject({
      state: 'active',
      archiveReason: null,
    });
  });

  it('replay nothing of another subscription or account, and say what is wrong with a time', async () => {
    const { state } = pages.api.server;
    const { items } = await state.webhookEvents.list(FIRST_ACCOUNT_ID, {
      of: { subscriptionId: 'wsu_gone' },
      limit: 9,
      offset: 0,
    });
    const event_id = items[0]?.id ?? '';
    expect((await pages.post('/webhooks/wsu_a/replay', admin, { event_id })).status).toBe(404);
    expect((await pages.post('/webhooks/wsu_theirs/replay', passthrough, { event_id })).status).toBe(404);
    expect((await pages.post('/webhooks/wsu_gone/replay', passthrough, { event_id })).status).toBe(404);
    for (const since of ['', 'yesterday', '2026-13-45T99:99', '2026-01-31T12:00Z']) {
      const { status, html } = await pages.post('/webhooks/wsu_a/replay', admin, { since });
      expect([status, html.includes('must be a time')], since).toEqual([400, true]);
    }
  });

  const FORM = {
    ...{ type: 'http', name: 'made here', client_url: 'https://hooks.example.com/x?key=sesame', active: 'on' },
    ...{ event_types: 'job.run.errored', authorization: 'on', standard_headers: 'on', environments: 'prod, staging' },
    ...{ headers: 'X-Api-Key: sesame two\nX-Other: b', body_template: '', signature_header: '', max_per_minute: '30' },
  };

  it('make a subscription of a form, show its secret once, and change it without losing what is not shown', async () => {
    const { subscriptions } = pages.api.server.state;
    const made = await pages.post('/webhooks/new', admin, FORM);
    expect(made.status).toBe(201);
    const secret = /whsec_[\w+/=]+/.exec(made.html)?.[0];
    const id = /href="\/webhooks\/(wsu_\w+)"/.exec(made.html)?.[1] ?? '';
    expect(await subscriptions.find(FIRST_ACCOUNT_ID, id)).toMatchObject({
      ...{ name: 'made here', kind: 'http', state: 'active', eventTypes: ['job.run.errored'], maxPerMinute: 30 },
      filter: { environments: ['prod', 'staging'], models: [] },
    });
    const form = (await pages.get(`/webhooks/${id}/change`, admin)).html;
    expect(form).toContain('value="https://hooks.example.com/x?key=sesame"');
    expect(form).not.toContain('sesame two');
    for (const path of [`/webhooks/${id}`, `/webhooks/${id}/change`]) {
      expect((await pages.get(path, admin)).html).not.toContain(secret);
    }
    const { headers: _headers, type: _type, ...rest } = FORM;
    const changed = await pages.post(`/webhooks/${id}/change`, admin, { ...rest, headers: '', name: 'renamed' });
    expect(changed.headers.location).toBe(`/webhooks/${id}?done=changed`);
    const before = await subscriptions.find(FIRST_ACCOUNT_ID, id);
    expect(before).toMatchObject({ name: 'renamed', sealedHeaders: expect.any(String), urlVersion: 1 });
    await pages.post(`/webhooks/${id}/change`, admin, { ...rest, headers: '', remove_headers: 'on' });
    expect(await subscriptions.find(FIRST_ACCOUNT_ID, id)).toMatchObject({ sealedHeaders: null });

    const rotated = await pages.post(`/webhooks/${id}/secret`, admin);
    expect(/whsec_[\w+/=]+/.exec(rotated.html)?.[0]).not.toBe(secret);
    expect(rotated.html).toContain('The old secret signs as well until ');
    await pages.post(`/webhooks/${id}/pause`, admin);
    expect(await subscriptions.find(FIRST_ACCOUNT_ID, id)).toMatchObject({ state: 'inactive' });
    expect((await pages.get(`/webhooks/${id}/delete`, admin)).html).toContain('made here?');
    expect((await pages.post(`/webhooks/${id}/delete`, passthrough)).status).toBe(404);
    await pages.post(`/webhooks/${id}/delete`, admin);
    expect(await subscriptions.find(FIRST_ACCOUNT_ID, id)).toBeUndefined();
  });

  it('take what belongs to another type for not said, and keep it where the form of a type has no field for it', async () => {
    const { subscriptions } = pages.api.server.state;
    const typed = { ...FORM, routing_key: 'of another type', per_owner: 'on', body_template: '' };
    const id = /href="\/webhooks\/(wsu_\w+)"/.exec((await pages.post('/webhooks/new', admin, typed)).html)?.[1] ?? '';
    expect(await subscriptions.find(FIRST_ACCOUNT_ID, id)).toMatchObject({ sealedRoutingKey: null, isPerOwner: false });
    const chat = { ...FORM, type: 'slack', name: 'a chat', run_details: 'on', headers: '' };
    // A chat's messages are not signed, so that no secret is shown.
    const { headers: made } = await pages.post('/webhooks/new', admin, chat);
    const chatId = /^\/webhooks\/(wsu_\w+)\?done=created$/.exec(made.location ?? '')?.[1] ?? '';
    const shown = (await pages.get(`/webhooks/${chatId}?done=created`, admin)).html;
    expect(shown).toContain('It was created.');
    expect(shown).not.toMatch(/whsec_|New secret/);
    const before = await subscriptions.find(FIRST_ACCOUNT_ID, chatId);
    expect(before).toMatchObject({ kind: 'slack', hasRunDetails: false, hasAuthorization: true });
    const form = (await pages.get(`/webhooks/${chatId}/change`, admin)).html;
    for (const name of ['routing_key', 'body_template', 'run_details', 'authorization']) {
      expect(form).not.toContain(`name="${name}"`);
    }
    for (const name of ['headers', 'per_owner']) expect(form).toContain(`name="${name}"`);
    await pages.post(`/webhooks/${chatId}/change`, admin, {
      ...{ name: 'renamed', client_url: FORM.client_url, event_types: FORM.event_types, per_owner: 'on' },
    });
    expect(await subscriptions.find(FIRST_ACCOUNT_ID, chatId)).toMatchObject({
      ...{ name: 'renamed', isPerOwner: true, hasAuthorization: true },
    });
    for (const one of [id, chatId]) await pages.post(`/webhooks/${one}/delete`, admin);
  });

  it('store when a message is wanted as the API has it, and show the choice again', async () => {
    const { subscriptions } = pages.api.server.state;
    const { event_types: _events, ...rest } = { ...FORM, type: 'slack', headers: '' };
    const made = await pages.post('/webhooks/new', admin, {
      ...{ ...rest, when: 'each', occasions: ['failed', 'recovered'], at_once: 'on' },
    });
    const path = made.headers.location?.replace(/\?.*/, '') ?? '';
    const stored = async () => {
      const { eventTypes, filter } = (await subscriptions.find(FIRST_ACCOUNT_ID, path.split('/')[2] ?? '')) ?? {};
      return { eventTypes, ...filter };
    };
    const ends = ['job.run.errored', 'job.run.completed'];
    expect(await stored()).toMatchObject({ eventTypes: ends, verdicts: ['failed', 'recovered'], transitions: [] });
    expect((await pages.get(path, admin)).html).toContain('a run fails; a run succeeds after one that failed');
    const form = (await pages.get(`${path}/change`, admin)).html;
    for (const ticked of ['name="when" value="each" checked', 'value="failed" checked', 'value="recovered" checked'])
      expect(form).toContain(ticked);
    expect(form).not.toMatch(/value="(success|warned|canceled|started)" checked|As it was set over the API/);

    await pages.post(`${path}/change`, admin, { ...rest, when: 'changes', occasions: 'failed' });
    expect(await stored()).toMatchObject({
      ...{ eventTypes: ['job.run.completed'], verdicts: [], transitions: ['first_failure', 'recovery'] },
    });
    expect((await pages.get(`${path}/change`, admin)).html).toContain('name="when" value="changes" checked');
    await pages.post(`${path}/delete`, admin);
  });

  it.each(['started', 'canceled'])(
    'store failures and recoveries for PagerDuty, whatever was ticked for another type: %s',
    async (ticked) => {
      const { subscriptions } = pages.api.server.state;
      const { event_types: _events, ...rest } = {
        ...FORM,
        type: 'pagerduty',
        routing_key: '0123456789abcdef'.repeat(2),
      };
      const given = { ...rest, when: 'each', occasions: ticked, at_once: 'on' };
      const made = await pages.post('/webhooks/new', admin, given);
      const path = made.headers.location?.replace(/\?.*/, '') ?? '';
      const stored = () => subscriptions.find(FIRST_ACCOUNT_ID, path.split('/')[2] ?? '');
      const asked = {
        ...{ eventTypes: ['job.run.errored', 'job.run.completed'], filter: { verdicts: ['failed', 'recovered'] } },
      };
      expect(await stored()).toMatchObject(asked);
      await pages.post(`${path}/change`, admin, given);
      expect(await stored()).toMatchObject(asked);
      await pages.post(`${path}/delete`, admin);
    },
  );

  it('keep a combination of the API that no choice makes', async () => {
    const { subscriptions } = pages.api.server.state;
    const filter = { ...NO_FILTER, statuses: [RUN_STATUS.success], verdicts: ['warned'] as const };
    await subscriptions.add(subscription('kept', { eventTypes: ['job.run.errored', 'job.run.completed'], filter }));
    const form = (await pages.get('/webhooks/wsu_kept/change', admin)).html;
    expect(form).toContain('As it was set over the API: job.run.errored, job.run.completed, warned, success');
    const fields = [...form.matchAll(/<input type="hidden" name="(\w+)" value="([\w.]+)"/g)];
    const sent = groupBy(fields, ([, name]) => name ?? '');
    const kept = Object.fromEntries([...sent].map(([name, all]) => [name, all.map(([, , value = '']) => value)]));
    const { event_types: _events, headers: _headers, ...rest } = FORM;
    await pages.post('/webhooks/wsu_kept/change', admin, { ...rest, ...kept, environments: '', when: 'kept' });
    const eventTypes = ['job.run.errored', 'job.run.completed'];
    expect(await subscriptions.find(FIRST_ACCOUNT_ID, 'wsu_kept')).toMatchObject({ eventTypes, filter });
    await pages.post('/webhooks/wsu_kept/delete', admin);
  });

  it.each([
    [{ client_url: 'nowhere' }, 'Endpoint: must be a URL that begins with http:// or https://.'],
    [{ name: ' ' }, 'Name: is empty.'],
    [{ event_types: '' }, 'When: is none of job.run.started, job.run.completed, job.run.errored.'],
    [{ type: 'pigeon' }, 'Type: is none of '],
    [{ max_per_minute: 'many' }, 'Attempts a minute: must be a whole number, or null for no limit.'],
    [{ headers: 'a header' }, 'Headers, a header: is not the name of a header'],
    [{ headers: 'Authorization: Bearer x' }, 'Headers, Authorization: deliveries carry their signature in it'],
    [{ type: 'pagerduty' }, 'Routing key: is missing'],
    [{ body_template: '{{ nothing }}' }, 'Body template: '],
    [{ expect: 'soon' }, 'Expect a run: '],
    [{ notify_on_archive: 'wsu_none' }, 'Notify on archive: there is no webhook wsu_none in this account.'],
    [{ job_ids: '999999' }, 'Jobs: there is no job 999999 in this account.'],
  ])('show a form of %j again with what is wrong and what was typed', async (wrong, problem) => {
    const { status, html } = await pages.post('/webhooks/new', admin, { ...FORM, description: SCRIPT, ...wrong });
    expect(status).toBe(400);
    expect(html).toContain(problem);
    expect(html).toContain('&lt;script&gt;alert(1)');
    expect(html).not.toContain(SCRIPT);
    expect(html).toMatch(/name="standard_headers" value="on" checked/);
  });

  it('show what was sent and answered, of states that are asked for', async () => {
    const { state } = pages.api.server;
    const { items } = await state.webhookEvents.list(FIRST_ACCOUNT_ID, {
      of: { subscriptionId: 'wsu_gone' },
      limit: 9,
      offset: 0,
    });
    const sent = items.find(({ attemptCount }) => attemptCount > 0);
    const { html } = await pages.get(`/webhooks/wsu_gone/events/${sent?.id}`, admin);
    expect(html).toContain('Attempt 1');
    expect(html).toContain('it said &lt;script&gt;');
    expect((await pages.get(`/webhooks/wsu_a/events/${sent?.id}`, admin)).status).toBe(404);
    expect((await pages.get(`/webhooks/wsu_gone/events/${sent?.id}`, passthrough)).status).toBe(404);
    expect((await pages.get('/webhooks/wsu_gone?state=delivered', admin)).html).toContain('No events of this state.');
    expect((await pages.get('/webhooks/wsu_gone?state=nonsense', admin)).html).toContain('job.run.completed');
  });

  it("show a run's deliveries on its page, of all subscriptions, and redeliver from there", async () => {
    const { state } = pages.api.server;
    const { items } = await state.webhookEvents.list(FIRST_ACCOUNT_ID, {
      of: { subscriptionId: 'wsu_gone' },
      ...{ limit: 9, offset: 0 },
    });
    const sent = items.find(({ attemptCount }) => attemptCount > 0);
    if (sent === undefined) throw new Error('nothing was sent');
    const path = `/runs/${sent.facts.runId}/deliveries`;
    const { html } = await pages.get(path, admin);
    expect(html).toContain(`href="${path}" aria-current="page">Deliveries</a>`);
    expect(html).toContain('answered 500 after 12 ms');
    expect(html).toContain(`href="/webhooks/wsu_gone/events/${sent.id}"`);
    // Those of other runs are not here.
    for (const { id } of items) expect(html.includes(id)).toBe(id === sent.id);
    for (const of of ['wsu_a', 'wsu_chat']) expect(html).toContain(`href="/webhooks/${of}">`);
    const asked = { event_id: sent.id, back: 'run' };
    const replayed = await pages.post('/webhooks/wsu_gone/replay', admin, asked);
    expect(replayed.headers.location).toMatch(new RegExp(`^${path}\\?done=replayed&count=[01]$`));
    const done = await pages.get(`${path}?done=replayed&count=1`, admin);
    expect(done.html).toContain('1 event will be delivered again.');
    const reader = await pages.get(path, tokens.get('read_only'));
    expect(reader.html).toContain('answered 500 after 12 ms');
    expect(reader.html).not.toContain('Redeliver');
    // Who may not read webhooks, or no runs, has no such tab.
    expect((await pages.get(`/runs/${sent.facts.runId}`, tokens.get('analyst'))).html).not.toContain('/deliveries');
    expect((await pages.get(path, tokens.get('analyst'))).status).toBe(403);
    expect((await pages.get(path, tokens.get('webhooks_only'))).status).toBe(403);
    expect((await pages.get(path, passthrough)).status).toBe(404);
  });

  it('say on the page of a run that notified nobody how to be notified of the next', async () => {
    const { html } = await pages.get('/runs/1001/deliveries', admin);
    expect(html).toMatch(/asked for this run&#39;s events.*<a href="\/webhooks\/new">Create one<\/a>/s);
    expect((await pages.get('/runs/1001/deliveries', tokens.get('read_only'))).html).not.toContain('/webhooks/new');
  });

  it('dismiss the notice of archived ones until another one is archived', async () => {
    const notice = 'archived: nothing is sent there any more';
    await pages.api.server.state.subscriptions.add(
      subscription('old', { state: 'archived', archiveReason: 'it failed' }),
    );
    expect((await pages.get('/webhooks', admin)).html).toMatch(/was\s+archived/);
    const { headers } = await pages.post('/webhooks/dismiss', admin);
    const [cookie = ''] = String(headers['set-cookie']).split(';');
    const seen = await pages.get('/webhooks', undefined, { Cookie: `run_bridge_token=${admin}; ${cookie}` });
    expect(seen.status).toBe(200);
    expect(seen.html).not.toContain(notice);
  });

  it('say what an endpoint answered to a test', async () => {
    const { state } = pages.api.server;
    await state.subscriptions.add(subscription('deaf', { clientUrl: 'http://127.0.0.1:1/' }));
    const { status, html } = await pages.post('/webhooks/wsu_deaf/test', admin);
    expect(status).toBe(200);
    expect(html).toContain('The test was not delivered: ');
    // Its address is no page: nothing asks for it again.
    expect(html).not.toContain('data-live');
  });
});
