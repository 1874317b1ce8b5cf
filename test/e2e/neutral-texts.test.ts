import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { appendFileSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { SAMPLES } from '../fake/sample-run.js';
import { BridgeProcess } from '../tool/bridge-process.js';
import { ACTIVE_TEXT, hostileLines, STILL_ACTIVE } from '../tool/hostile-run.js';
import { subscribe } from '../tool/subscribe.js';
import { until } from '../tool/until.js';
import { runBridge } from './run-bridge.js';

// What stands in the texts of a run, and in names that came with it, does nothing in a terminal, in the log of a CI system or on a page.

const MAIN = new URL('../../dist/main.js', import.meta.url).pathname;

let dir: string;
const run = (...args: readonly string[]) => runBridge(args, { cwd: dir });
const inData = (...args: readonly string[]) => run(...args, '--data-dir', 'data');
/** Runs an engine under `exec`. */
const exec = (flags: readonly string[], engine: string, ...args: readonly string[]) =>
  run('exec', ...flags, '--data-dir', 'data', '--', process.execPath, '-e', engine, ...args);
const write = (name: string) =>
  `require('fs').writeFileSync(process.env.DBT_OTEL_FILE_NAME, require('fs').readFileSync('${name}.jsonl'));`;
const ofTrace = (name: string) =>
  `${hostileLines()
    .join('\n')
    .replaceAll('01a1fb8ed69e7ef184c99d1f72b8766e', Buffer.from(name.padEnd(16)).toString('hex'))}\n`;
const HOSTILE_RUN = '1001';
const EXECUTED_RUN = '1002';

beforeAll(async () => {
  dir = mkdtempSync(join(tmpdir(), 'run-bridge-neutral-'));
  writeFileSync(join(dir, 'hostile.jsonl'), `${hostileLines().join('\n')}\n`);
  await inData('import', 'hostile.jsonl');
  for (const name of ['executed', 'failed']) writeFileSync(join(dir, `${name}.jsonl`), ofTrace(name));
  const names = ['--job', ACTIVE_TEXT, '--environment', ACTIVE_TEXT, '--project', ACTIVE_TEXT, '--run-id', ACTIVE_TEXT];
  const executed = await exec(names, `${write('executed')}`, ACTIVE_TEXT);
  expect(executed).toMatchObject({ exitCode: 0, stderr: '' });
});
afterAll(() => rmSync(dir, { recursive: true, force: true }));

function expectNeutral(text: string): void {
  expect(text).toContain('owned');
  expect(STILL_ACTIVE.exec(text)).toBeNull();
}

describe('in a terminal and in the log of a CI system', () => {
  test.each([
    ['runs'],
    ['runs', '--format', 'json'],
    ['report', HOSTILE_RUN],
    ['report', HOSTILE_RUN, '--format', 'json'],
    ['report', HOSTILE_RUN, '--format', 'markdown', '--redaction', 'off'],
    ['report', HOSTILE_RUN, '--against', resolve(SAMPLES, 'build-clean', 'otel.jsonl')],
    ['report', HOSTILE_RUN, '--format', 'junit', '--redaction', 'off'],
    ['report', HOSTILE_RUN, '--format', 'html', '--redaction', 'off'],
    ['report', HOSTILE_RUN, '--format', 'perfetto', '--redaction', 'off'],
    ['diff', HOSTILE_RUN, resolve(SAMPLES, 'build-clean', 'otel.jsonl')],
    ['diff', HOSTILE_RUN, resolve(SAMPLES, 'build-clean', 'otel.jsonl'), '--format', 'json'],
    ['query', 'SELECT n.message, r.job, n.name FROM nodes n, runs r'],
    ['query', '--csv', 'SELECT n.message, r.job, n.name FROM nodes n, runs r'],
    ['query', '--json', 'SELECT n.message, r.job, n.name, {a: [n.message]} AS parts FROM nodes n, runs r'],
    ['query', `SELECT 1 AS "${ACTIVE_TEXT}"`],
    ['query', '--csv', `SELECT 1 AS "${ACTIVE_TEXT}"`],
    ['query', '--json', `SELECT 1 AS "${ACTIVE_TEXT}"`],
    ['finish', ACTIVE_TEXT],
  ])('nothing that a run says is acted on (%#)', async (...args) => {
    const { exitCode, stdout, stderr } = await inData(...args);
    expect(exitCode).toBe(0);
    expectNeutral(stdout + stderr);
  });

  test('errors that quote what was said do nothing', async () => {
    for (const args of [
      ['report', `other ${ACTIVE_TEXT}`],
      ['open', ACTIVE_TEXT],
      ['export', ACTIVE_TEXT],
      ['delete', '--yes', ACTIVE_TEXT],
      ['finish', `other ${ACTIVE_TEXT}`],
      ['runs', '--status', ACTIVE_TEXT],
      ['query', `SELECT "${ACTIVE_TEXT}"`],
      ['token', ACTIVE_TEXT],
      ['webhook', ACTIVE_TEXT],
    ]) {
      const { exitCode, stdout, stderr } = await inData(...args);
      expect([args[0], exitCode !== 0, stdout]).toEqual([args[0], true, '']);
      expectNeutral(stderr);
    }
    for (const args of [[ACTIVE_TEXT], ['help', ACTIVE_TEXT], ['runs', `--${ACTIVE_TEXT}`]]) {
      const { exitCode, stderr } = await run(...args);
      expect(exitCode).toBe(2);
      expectNeutral(stderr);
    }
  });

  test('neither do lines of a file that are no records, by their file or what is said of them', async () => {
    const path = `odd ::error::owned ##vso[owned] \u202e\u009b.jsonl`;
    writeFileSync(join(dir, path), `##vso[owned]\u202e\u009b31m\n{"a":"::error::owned##[owned]"\u202e}\n`);
    for (const args of [
      ['import', path],
      ['convert', path, 'out.parquet'],
    ]) {
      const { stdout, stderr } = await (args[0] === 'import' ? inData(...args) : run(...args));
      expect(stderr).toContain('owned');
      expect(STILL_ACTIVE.exec(stdout + stderr)).toBeNull();
    }
  });

  test('neither do the names of tokens and what exec says', async () => {
    const name = '::error::owned ##vso[x]owned ##[error]owned';
    const created = await inData('token', 'create', '--name', name, '--permission', 'read_only');
    expectNeutral(created.stderr);
    const { stdout } = await inData('token', 'list');
    expectNeutral(stdout);
    const missing = await run('exec', '--data-dir', 'data', '--', `./${ACTIVE_TEXT}`);
    expect(missing.exitCode).toBe(127);
    expectNeutral(missing.stderr);
    const flags = [
      '--summary',
      '--report',
      'text,markdown,html,junit,json',
      '--redaction',
      'off',
      '--job',
      ACTIVE_TEXT,
    ];
    const { exitCode, stderr } = await exec(flags, `${write('failed')} process.exitCode = 1`);
    expect(exitCode).toBe(1);
    expectNeutral(stderr);
  });

  test('neither do those of a run under way', async () => {
    const flags = ['exec', '--job', ACTIVE_TEXT, '--data-dir', 'under-way'];
    const engine = `${write('half')} setInterval(() => {}, 1000)`;
    const env = { PATH: process.env.PATH ?? '', HOME: dir };
    const lines = ofTrace('half').split('\n');
    writeFileSync(join(dir, 'half.jsonl'), `${lines.slice(0, lines.length / 2).join('\n')}\n`);
    const child = spawn(process.execPath, [MAIN, ...flags, '--', process.execPath, '-e', engine], {
      cwd: dir,
      env,
      stdio: 'ignore',
    });
    const exit = once(child, 'exit');
    try {
      const shown = await until('the run', async () => {
        const { stdout } = await run('top', '--once', '--data-dir', 'under-way');
        return stdout.includes('1001') ? stdout : undefined;
      });
      expectNeutral(shown);
    } finally {
      child.kill('SIGTERM');
      await exit;
    }
  });

  test('JSON is equal after parsing', async () => {
    const { stdout } = await inData(
      'query',
      '--json',
      `SELECT '${ACTIVE_TEXT}' AS text, {t: '${ACTIVE_TEXT}'} AS parts`,
    );
    expect(JSON.parse(stdout)).toEqual([{ text: ACTIVE_TEXT, parts: { t: ACTIVE_TEXT } }]);
    const runs = JSON.parse((await inData('runs', '--format', 'json')).stdout);
    expect(runs.runs.map(({ run_key }: { readonly run_key: string | null }) => run_key)).toContain(ACTIVE_TEXT);
    const report = JSON.parse((await inData('report', HOSTILE_RUN, '--format', 'json')).stdout);
    expect(JSON.stringify(report)).toContain(JSON.stringify(ACTIVE_TEXT).slice(1, -1));
  });
});

describe('on a page', () => {
  let bridge: BridgeProcess;
  let cookie: string;
  beforeAll(async () => {
    bridge = await BridgeProcess.start({ dataFolder: join(dir, 'data') });
    const { stdout } = await inData('open', '--print');
    const response = await fetch(stdout.trim(), { redirect: 'manual', headers: { accept: 'text/html' } });
    cookie = response.headers.getSetCookie()[0]?.split(';')[0] ?? '';
  });
  afterAll(async () => void (await bridge.stop()));

  test('nor in the list of webhooks, which names of theirs reach', async () => {
    const { stdout: token } = await inData('token', 'create', '--name', 'all', '--permission', 'admin');
    await subscribe(bridge, token.trim(), ACTIVE_TEXT, 'http://127.0.0.1:9/');
    const { exitCode, stdout } = await inData('webhook', 'list');
    expect(exitCode).toBe(0);
    expectNeutral(stdout);
    const html = await ask('/webhooks');
    expect(html).toContain('\\u202eevil');
    expect(html).not.toContain('\u202e');
  });

  const ask = async (path: string) => {
    const response = await fetch(bridge.webUrl + path, { headers: { cookie, accept: 'text/html' } });
    expect([path, response.status]).toEqual([path, 200]);
    return await response.text();
  };

  const sql = (text: string) => `/query?${new URLSearchParams({ sql: text })}`;
  test.each([
    `/?${new URLSearchParams({ text: ACTIVE_TEXT })}`,
    '/jobs',
    '/models',
    '/settings',
    ...[HOSTILE_RUN, EXECUTED_RUN].flatMap((id) =>
      ['', '/nodes', '/logs', '/timeline', '/graph', '/artifacts', '/deliveries', '/delete'].map(
        (page) => `/runs/${id}${page}`,
      ),
    ),
    `/runs/${EXECUTED_RUN}/compare?with=${HOSTILE_RUN}`,
    `/runs/${HOSTILE_RUN}/nodes?${new URLSearchParams({ text: ACTIVE_TEXT })}`,
    sql(`SELECT message AS "${ACTIVE_TEXT}", '${ACTIVE_TEXT}' AS text, 1 AS n FROM nodes LIMIT 3`),
  ])('shows characters that do something, and does not let them (%#)', async (path) => {
    const html = await ask(path);
    expect(html).toContain('</html>');
    expect(/(?![\n\t])\p{Cc}|[\u061c\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f\ufeff]/u.exec(html)).toBeNull();
  });

  test.each([
    '/',
    '/jobs',
    `/runs/${EXECUTED_RUN}`,
    `/runs/${HOSTILE_RUN}/logs`,
    sql(`SELECT '${ACTIVE_TEXT}' AS text`),
  ])('such characters are seen (%#)', async (path) => {
    const html = await ask(path);
    expect(html).toContain(
      'section_start:1:owned\\u000d\\u001b[0K \\u009b31mred\\u0008\\u061c\\u200e\\u200f\\u2066\\u202eevil',
    );
  });

  test('what a page draws by a script, and a log to copy, are as harmless', async () => {
    const timeline = JSON.parse(await ask(`/runs/${HOSTILE_RUN}/timeline.json`));
    const names = timeline.nodes.map(({ name }: { readonly name: string }) => name);
    expect(names.join('\n')).toContain('::error file=evil::owned%0A::stop-commands::x\n::warning::owned');
    expect(names.join('\n')).not.toMatch(/(?!\n)\p{Cc}|[\u202a-\u202e]/u);
    expectNeutral(await ask(`/runs/${HOSTILE_RUN}/logs.txt`));
  });
});

test('letters and signs of all scripts stay as they are, with the joiners between them', async () => {
  const text = 'می‌خواهم क्‍ष 👩‍👩‍👧 ❤️ שלום עולם naïve 日本語';
  mkdirSync(join(dir, 'scripts'));
  const [first = ''] = hostileLines();
  const { trace_id, span_id } = JSON.parse(first);
  const line = { record_type: 'LogRecord', trace_id, span_id, span_name: null, event_id: null, severity_number: 17 };
  const event = { event_type: 'v1.public.events.fusion.log.LogMessage', attributes: {}, severity_text: 'ERROR' };
  const whole = { ...line, ...event, time_unix_nano: '1795221792690281654', body: text };
  writeFileSync(join(dir, 'scripts', 'otel.jsonl'), `${hostileLines().join('\n')}\n`);
  appendFileSync(join(dir, 'scripts', 'otel.jsonl'), `${JSON.stringify(whole)}\n`);
  const { stdout } = await run('report', 'scripts/otel.jsonl');
  expect(stdout).toContain(text);
});
