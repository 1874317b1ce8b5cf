import { execFileSync } from 'node:child_process';
import { chmodSync, existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { freePorts } from '../crash/free-ports.js';
import { sampleTraceId } from '../fake/sample-run.js';
import { BridgeProcess } from '../tool/bridge-process.js';
import { sendSample } from '../tool/send-sample.js';
import { until } from '../tool/until.js';
import { runBridge } from './run-bridge.js';

let dir: string;
let opened: string;
const ended: (() => Promise<void>)[] = [];
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'run-bridge-open-'));
  opened = join(dir, 'opened');
  // Stands for the browser of a desktop.
  writeFileSync(
    join(dir, 'xdg-open'),
    `#!/bin/sh\nprintf %s "$1" > ${opened}.partial && mv ${opened}.partial ${opened}\n`,
  );
  chmodSync(join(dir, 'xdg-open'), 0o755);
});
afterEach(async () => {
  for (const end of ended.splice(0)) await end();
  rmSync(dir, { recursive: true, force: true });
});

async function serve(...args: readonly string[]): Promise<BridgeProcess> {
  const bridge = await BridgeProcess.start({ args, dataFolder: join(dir, 'data') });
  ended.push(() => bridge.remove());
  return bridge;
}

const open = (args: readonly string[], env: Readonly<Record<string, string>> = {}) =>
  runBridge(['open', '--data-dir', join(dir, 'data'), ...args], { cwd: dir, env });
const withBrowser = () => ({ PATH: `${dir}:${process.env.PATH}` });
/** As a browser does: it does not follow, and tells which cookie it would keep. */
async function visit(url: string, cookie = ''): Promise<{ status: number; location: string | null; cookie: string }> {
  const headers = { accept: 'text/html', cookie };
  const response = await fetch(url, { redirect: 'manual', headers });
  const [kept = ''] = response.headers.getSetCookie()[0]?.split(';') ?? [];
  return { status: response.status, location: response.headers.get('location'), cookie: kept };
}

describe('run-bridge open', () => {
  test('opens a page in the browser, signed in by a link that is good once', async () => {
    const bridge = await serve();
    const { exitCode, stdout } = await open([], withBrowser());
    expect(exitCode).toBe(0);
    const url = await until('the browser', () => (existsSync(opened) ? readFileSync(opened, 'utf8') : undefined));
    expect(stdout).toBe(`${url}\n`);
    expect(url.startsWith(`${bridge.webUrl}/sign-in?link=rbt_`)).toBe(true);
    const first = await visit(url);
    expect(first).toMatchObject({ status: 303, location: '/' });
    expect(await visit(bridge.webUrl, first.cookie)).toMatchObject({ status: 200 });
    expect(await visit(url)).toMatchObject({ status: 401, cookie: '' });
    const secret = new URL(url).searchParams.get('link') ?? '';
    expect(bridge.stdout + bridge.stderr).not.toContain(secret);
    for (const name of ['state.db', 'state.db-wal']) {
      const path = join(dir, 'data', name);
      if (existsSync(path)) expect(readFileSync(path, 'latin1')).not.toContain(secret);
    }
    const { stdout: tokens } = await runBridge(['token', 'list', '--data-dir', join(dir, 'data')], { cwd: dir });
    expect(tokens).toMatch(/a browser, by a link +account_admin/);
  });

  test('leads to a run, prints the link where nothing can be opened, and opens nothing where it is to print alone', async () => {
    const bridge = await serve();
    await sendSample(bridge.otlpUrl, 'build-clean');
    const traceId = sampleTraceId('build-clean');
    await bridge.finished(traceId);
    const none = await open(['1001'], { PATH: dirname(process.execPath) });
    expect(none).toMatchObject({ exitCode: 0, stderr: expect.stringContaining('no browser could be started') });
    expect(await visit(none.stdout.trim())).toMatchObject({ status: 303, location: '/runs/1001' });
    for (const [args, env] of [
      [['--print'], withBrowser()],
      [[], { ...withBrowser(), SSH_CONNECTION: '192.0.2.1 50000 192.0.2.2 22' }],
    ] as const) {
      const { exitCode, stdout } = await open(args, env);
      expect([exitCode, (await visit(stdout.trim())).status]).toEqual([0, 303]);
    }
    const invocationId = traceId.replace(/^(.{8})(.{4})(.{4})(.{4})/, '$1-$2-$3-$4-');
    for (const name of [traceId, invocationId, invocationId.toUpperCase()]) {
      const { stdout } = await open([name, '--print']);
      expect(await visit(stdout.trim())).toMatchObject({ status: 303, location: '/runs/1001' });
    }
    expect(existsSync(opened)).toBe(false);
  });

  test.each([['loopback'], ['everybody']])(
    'opens nothing for a run that there is not: of pages for %s',
    async (whom) => {
      await serve('--web', whom === 'loopback' ? '127.0.0.1:0' : '0.0.0.0:0');
      const unknown = ['99999', '0', '01001', 'f'.repeat(32), '01a1fb8e-d69e-7ef1-84c9-9d1f72b8766f', '-'.repeat(36)];
      for (const name of unknown) {
        const { exitCode, stdout, stderr } = await open(['--', name], withBrowser());
        expect([exitCode, stdout]).toEqual([1, '']);
        expect(stderr).toBe(
          `run-bridge: no run ${name} is known in ${join(dir, 'data')}; run-bridge runs lists those of a data folder\n`,
        );
      }
      expect(existsSync(opened)).toBe(false);
    },
  );

  test('opens the form for a token where the pages can be reached from elsewhere', async () => {
    const bridge = await serve('--web', '0.0.0.0:0');
    expect(bridge.stderr).toContain('(sign in with a token; ');
    const { stdout, stderr } = await open(['--print']);
    expect(stdout).toMatch(/^http:\/\/127\.0\.0\.1:\d+\/\n$/);
    expect(stderr).toContain('ask for a token');
    expect(await visit(`${stdout.trim()}sign-in?link=rbt_x`)).toMatchObject({ status: 200, cookie: '' });
  });

  test('signs in by a link where the pages have a public address that only this machine reaches, as in a container', async () => {
    const [port = 0] = await freePorts(1, 27_000);
    const bridge = await serve('--web', `0.0.0.0:${port}`, '--public-url', `http://localhost:${port}`);
    expect(bridge.stderr).toContain('(run-bridge open signs in; ');
    const { stdout } = await open(['--print']);
    expect(await visit(stdout.trim())).toMatchObject({ status: 303, location: '/' });
  });

  test('says what to do where no bridge serves the folder, and what is no run', async () => {
    expect(await open([])).toMatchObject({
      exitCode: 1,
      stderr: expect.stringContaining('start one with run-bridge serve'),
    });
    expect(existsSync(join(dir, 'data'))).toBe(false);
    expect(await open(['nightly'])).toMatchObject({
      exitCode: 2,
      stderr: expect.stringContaining('neither the number of a run nor a trace id'),
    });
  });
});

test.each([
  { where: 'on this machine', web: ['--web', '127.0.0.1:0'], host: '127\\.0\\.0\\.1' },
  {
    where: 'in a container whose port is published on this machine',
    web: ['--web', '0.0.0.0:0', '--public-url', 'http://localhost:4380'],
    host: 'localhost',
  },
])('a start $where shows a terminal a link that signs in, and a log none', async ({ web, host }) => {
  const data = join(dir, 'data');
  const command = [process.execPath, 'dist/main.js', 'serve', '--data-dir', data];
  const ports = ['--http', '127.0.0.1:0', '--grpc', '127.0.0.1:0', ...web];
  // Ctrl+C, once it has said where health is.
  const shown = execFileSync('python3', ['test/tool/terminal.py', 'ctrl-c', ...command, ...ports], {
    encoding: 'utf8',
  });
  const { exit, output } = JSON.parse(shown);
  expect(exit).toBe(0);
  // The terminal's echo of the key may stand before it.
  const link = new RegExp(`^(?:\\^C)?sign in +http://${host}:\\d+(/sign-in\\?link=rbt_[\\w-]{43}) `, 'm');
  const path = link.exec(output)?.[1] ?? '';
  const bridge = await serve(...web);
  expect(bridge.stderr).toContain('(run-bridge open signs in; ');
  expect(bridge.stderr).not.toContain('link=');
  expect(await visit(bridge.webUrl + path)).toMatchObject({ status: 303, location: '/' });
});
