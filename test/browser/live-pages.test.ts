import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Page } from 'playwright-core';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { runBridge } from '../e2e/run-bridge.js';
import { sampleBodies, sampleLines } from '../fake/sample-run.js';
import { BridgeProcess } from '../tool/bridge-process.js';
import { PageBrowser } from '../tool/page-browser.js';
import { sendSample } from '../tool/send-sample.js';
import { until } from '../tool/until.js';

const MAIN = new URL('../../dist/main.js', import.meta.url).pathname;

let browser: PageBrowser;
let bridge: BridgeProcess;
beforeEach(async () => {
  browser = await PageBrowser.open();
  bridge = await BridgeProcess.start();
});
afterEach(async () => {
  expect(browser.complaints.splice(0)).toEqual([]);
  await browser.close();
  await bridge.remove();
});

/** A signed-in page, and how often it asked for which path. */
async function signedIn(): Promise<{ readonly page: Page; readonly asked: Map<string, number> }> {
  const page = await browser.page();
  const asked = new Map<string, number>();
  page.on('request', (request) => {
    const { pathname } = new URL(request.url());
    asked.set(pathname, (asked.get(pathname) ?? 0) + 1);
  });
  await browser.signIn(page, bridge);
  return { page, asked };
}

/** Resolves when the page has asked for its stream and looked once more since. */
async function followed(asked: ReadonlyMap<string, number>, path: string): Promise<void> {
  await until('the stream', () => asked.has('/events') && (asked.get(path) ?? 0) > 1);
}

/** Sends requests of a sample from one to another. */
async function sendPart(run: string, from: number, to?: number): Promise<void> {
  for (const { signal, body } of sampleBodies(run).slice(from, to)) {
    const headers = { 'content-type': 'application/x-protobuf' };
    const { status } = await fetch(`${bridge.otlpUrl}/v1/${signal}`, { method: 'POST', headers, body });
    expect(status).toBe(200);
  }
}

describe('the list of runs', () => {
  it('shows a run that comes, with the focus, what is marked and what is typed where they were', async () => {
    await sendSample(bridge.otlpUrl, 'parse');
    const { page } = await signedIn();
    await page.getByRole('row', { name: /#1001.*success/ }).waitFor();
    await page.getByRole('searchbox').fill('night');
    await page.getByRole('link', { name: '#1001' }).focus();
    await sendSample(bridge.otlpUrl, 'build-mixed');
    await page.getByRole('row', { name: /#1002.*failed/ }).waitFor();
    expect(await page.evaluate('document.activeElement.textContent')).toBe('#1001');
    expect(await page.getByRole('searchbox').inputValue()).toBe('night');

    await page.getByRole('cell', { name: /Binder Error/ }).waitFor();
    await page.getByRole('link', { name: '#1001' }).selectText();
    await sendSample(bridge.otlpUrl, 'build-clean');
    const isThere = async () =>
      (await (await page.request.get(bridge.webUrl, { headers: { Accept: 'text/html' } })).text()).includes('#1003');
    await until('the next run', isThere);
    expect(await page.evaluate('String(getSelection())')).toBe('#1001');
    await page.evaluate('getSelection().removeAllRanges()');
    await page.getByRole('row', { name: /#1003/ }).waitFor();
  });

  it('asks for itself when something has happened, and else not', async () => {
    await sendSample(bridge.otlpUrl, 'parse');
    await page1001IsOver();
    const { page, asked } = await signedIn();
    await followed(asked, '/');
    const before = asked.get('/') ?? 0;
    // A sign of life comes after 15 s of silence, in which a page without a stream would have asked three times.
    await page.evaluate(
      `new Promise((resolve) => new EventSource('/events').addEventListener('alive', resolve, { once: true })).then(() => {})`,
    );
    expect(asked.get('/')).toBe(before);
  });

  it('comes to the page for signing in when the token is revoked', async () => {
    const made = await runBridge(['token', 'create', '--name', 'me', '--permission', 'read_only'], {
      cwd: bridge.dataFolder,
      env: { RUN_BRIDGE_DATA_DIR: bridge.dataFolder },
    });
    const secret = /rbt_[\w-]{43}/.exec(made.stdout)?.[0] ?? '';
    const id = /\b(\d+)\b/.exec(made.stdout + made.stderr)?.[1] ?? '';
    const page = await browser.page();
    await page.goto(`${bridge.webUrl}/sign-in`);
    await page.getByLabel('Token').fill(secret);
    await page.getByRole('button', { name: 'Sign in' }).click();
    await page.getByText('No run has come yet').waitFor();
    const revoked = await runBridge(['token', 'revoke', id], {
      cwd: bridge.dataFolder,
      env: { RUN_BRIDGE_DATA_DIR: bridge.dataFolder },
    });
    expect(revoked.exitCode).toBe(0);
    await page.getByLabel('Token').waitFor();
  });

  it.each(['refuses', 'cuts off', 'holds back'])(
    'asks for itself now and then where something %s the stream',
    async (what) => {
      const page = await browser.page();
      await page.route('**/events', async (route) => {
        if (what === 'refuses') await route.fulfill({ status: 503, body: 'not now' });
        else if (what === 'cuts off') await route.abort();
        // Held back: it is never answered.
      });
      await browser.signIn(page, bridge);
      await sendSample(bridge.otlpUrl, 'parse');
      await page.getByRole('link', { name: '#1001' }).waitFor();
    },
  );
});

describe('the page of a run under way', () => {
  it('follows it to its end, and keeps what is typed and has the focus', async () => {
    await sendPart('build-mixed', 0, 1);
    const { page, asked } = await signedIn();
    await page.getByRole('link', { name: '#1001' }).waitFor();
    await page.goto(`${bridge.webUrl}/runs/1001/logs`);
    await page.getByRole('heading', { name: /adhoc #1001.*running/ }).waitFor();
    await followed(asked, '/runs/1001/logs');
    await page.getByRole('searchbox').first().fill('status');
    await until('the address', () => page.url().includes('text=status'));
    await sendPart('build-mixed', 1);
    await page.getByRole('heading', { name: /adhoc #1001.*failed/ }).waitFor();
    expect(page.url()).toContain('text=status');
    expect(await page.evaluate('document.activeElement.value')).toBe('status');
  });
});

describe('a run that sends OTLP', () => {
  it('says what is done and what ended last, and cannot be cancelled here', async () => {
    await sendPart('big-build', 0, 20);
    const { page } = await signedIn();
    await page.goto(`${bridge.webUrl}/runs/1001`);
    const box = page.getByRole('region', { name: 'How far it has come' });
    await box.getByText(/^\d+ nodes so far$/).waitFor();
    await box.getByText(/^Ended last: \w+ \w+/).waitFor();
    const before = await box.textContent();
    await sendPart('big-build', 20, 30);
    await until('more nodes', async () => (await box.textContent()) !== before);
    expect(await page.getByRole('button', { name: /Cancel/ }).count()).toBe(0);
    expect(await box.getByRole('list').count()).toBe(0);
  });
});

describe('a run under exec', () => {
  /** Starts a command that has got as far as its seventh node, and to its last one when there is a file `go`. */
  function startEngine(): ChildProcess {
    const lines = sampleLines('build-mixed-fusion');
    const isNode = (line: string) => line.includes('NodeProcessed') && line.includes('"SpanEnd"');
    const ends = lines.flatMap((line, index) => (isNode(line) ? [index + 1] : []));
    const [seventh = 0, last = 0] = [ends[6], ends.at(-1)];
    const cwd = bridge.dataFolder;
    writeFileSync(join(cwd, 'half.jsonl'), `${lines.slice(0, seventh).join('\n')}\n`);
    writeFileSync(join(cwd, 'rest.jsonl'), `${lines.slice(seventh, last).join('\n')}\n`);
    const engine = `
      const { appendFileSync, existsSync, readFileSync, unlinkSync } = require('fs');
      const add = (file) => appendFileSync(process.env.DBT_OTEL_FILE_NAME, readFileSync(file));
      add('half.jsonl');
      setInterval(() => {
        if (!existsSync('go')) return;
        unlinkSync('go');
        add('rest.jsonl');
      }, 50);`;
    const exec = [MAIN, 'exec', '--job', 'nightly', '--to', bridge.otlpUrl, '--', process.execPath, '-e', engine];
    return spawn(process.execPath, exec, { cwd, env: { PATH: process.env.PATH ?? '', HOME: cwd }, stdio: 'ignore' });
  }

  it('shows how far it has come as it goes on, in the list and without a script too, and is cancelled from its page', async () => {
    const engine = startEngine();
    const exit = once(engine, 'exit');
    try {
      const { page } = await signedIn();
      await page.getByRole('row', { name: /#1001.* 7 of 21 nodes, .*running \w+ for/ }).waitFor();
      await page.goto(`${bridge.webUrl}/runs/1001`);
      const box = page.getByRole('region', { name: 'How far it has come' });
      await box.getByText('7 of 21 nodes').waitFor();
      await box.getByRole('list', { name: 'Running now' }).waitFor();
      const plain = await browser.page(false);
      await browser.signIn(plain, bridge);
      await plain.goto(`${bridge.webUrl}/runs/1001`);
      await plain.getByText('7 of 21 nodes').waitFor();

      writeFileSync(join(bridge.dataFolder, 'go'), '');
      await box.getByText('21 of 21 nodes').waitFor();
      await box.getByText('3 failed').waitFor();
      await page.locator('.troubles').getByRole('link', { name: 'model broken' }).waitFor();

      await box.getByRole('button', { name: 'Cancel run 1001' }).click();
      await page.getByRole('heading', { name: /nightly #1001.*canceled/ }).waitFor();
      expect(await box.count()).toBe(0);
    } finally {
      engine.kill('SIGKILL');
      await exit;
    }
  });
});

describe('a server with streams', () => {
  it('ends at once when it is told to, and pages go on when it is back', async () => {
    const { page, asked } = await signedIn();
    await followed(asked, '/');
    const { dataFolder, webUrl } = bridge;
    const Authorization = `Token ${readFileSync(join(dataFolder, 'admin-token'), 'utf8').trim()}`;
    const own = await fetch(`${webUrl}/events`, { headers: { Authorization } });
    const [exitCode, text] = await Promise.all([bridge.stop(), own.text()]);
    // At its deadline the server would cut it off, which is an error to who reads it.
    expect([exitCode, text]).toEqual([0, expect.stringContaining('event: runs')]);
    bridge = await BridgeProcess.start({ dataFolder, args: ['--web', new URL(webUrl).host] });
    await sendSample(bridge.otlpUrl, 'parse');
    await page.getByRole('link', { name: '#1001' }).waitFor();
  });
});

/** Waits until nothing of the first run is under way. */
async function page1001IsOver(): Promise<void> {
  const Authorization = `Token ${readFileSync(join(bridge.dataFolder, 'admin-token'), 'utf8').trim()}`;
  await until('the end of run 1001', async () => {
    const answer = await fetch(`${bridge.webUrl}/api/run-bridge/v1/runs/1001`, { headers: { Authorization } });
    return answer.ok && /"status":"success"/.test(await answer.text());
  });
}
