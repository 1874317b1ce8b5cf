import { resolve } from 'node:path';
import type { Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll, expect, it } from 'vitest';
import { runBridge } from '../e2e/run-bridge.js';
import { sampleFolder } from '../fake/sample-run.js';
import { BridgeProcess } from '../tool/bridge-process.js';
import { PageBrowser } from '../tool/page-browser.js';

let browser: PageBrowser;
let bridge: BridgeProcess;
let page: Page;
beforeAll(async () => {
  browser = await PageBrowser.open();
  bridge = await BridgeProcess.start();
  const env = { RUN_BRIDGE_DATA_DIR: bridge.dataFolder };
  const at = { cwd: bridge.dataFolder, env };
  const file = resolve(sampleFolder('build-mixed'), 'otel.jsonl');
  // 1001, and 1002 to 1006 of two environments, with enough of them for a chart beside each length.
  expect(await runBridge(['import', file], at)).toMatchObject({ exitCode: 0 });
  for (const environment of ['production-of-the-finance-team', 'ci', 'ci', 'ci', 'ci']) {
    const of = ['--job', 'nightly', '--environment', environment, '--to', bridge.otlpUrl];
    await runBridge(['exec', ...of, '--', process.execPath, '-e', 'process.exit(1)'], at);
  }
  page = await browser.page();
  await browser.signIn(page, bridge);
});
afterEach(() => expect(browser.complaints.splice(0)).toEqual([]));
afterAll(async () => {
  await browser.close();
  await bridge.remove();
});

/** The link that has the focus. */
const focused = () => page.evaluate<string>('document.activeElement.textContent');

it('is gone through with j and k, and Enter opens a run', async () => {
  await page.goto(bridge.webUrl);
  await page.getByRole('row', { name: /#1006/ }).waitFor();
  const seen: string[] = [];
  for (const key of ['j', 'j', 'j', 'k', 'k', 'k']) {
    await page.keyboard.press(key);
    seen.push(await focused());
  }
  expect(seen).toEqual(['#1006', '#1005', '#1004', '#1005', '#1006', '#1006']);
  await page.keyboard.press('/');
  await page.keyboard.type('jk');
  expect(await page.getByRole('searchbox').inputValue()).toBe('jk');
  await page.getByRole('link', { name: '#1005' }).focus();
  await page.keyboard.press('j');
  await page.keyboard.press('Enter');
  await page.getByRole('heading', { name: /nightly #1004/ }).waitFor();
  await page.getByRole('link', { name: 'Run after, #1005' }).click();
  await page.getByRole('heading', { name: /nightly #1005/ }).waitFor();
});

it.each(['/', '/jobs/4002'])(
  '%s is cards in a narrow window, in which nothing lies over anything else',
  async (path) => {
    for (const width of [599, 390, 320]) {
      await page.setViewportSize({ width, height: 900 });
      await page.goto(`${bridge.webUrl}${path}`);
      await page.locator('tr[id^="run-"]').first().waitFor();
      const overlaps = await page.evaluate<readonly string[]>(`(() => {
      const found = [];
      for (const row of document.querySelectorAll('tr[id^="run-"]')) {
        const cells = [...row.cells].filter((cell) => cell.offsetParent !== null);
        for (const cell of cells) {
          if (cell.scrollWidth > cell.clientWidth + 1) found.push(row.id + ': ' + cell.textContent + ' is wider than its cell');
        }
        const boxes = cells.map((cell) => [cell.textContent, cell.getBoundingClientRect()]);
        for (const [at, [text, a]] of boxes.entries()) {
          for (const [other, b] of boxes.slice(at + 1)) {
            if (a.right > b.left && b.right > a.left && a.bottom > b.top + 1 && b.bottom > a.top + 1) {
              found.push(row.id + ': ' + text + ' over ' + other);
            }
          }
        }
      }
      return found;
    })()`);
      expect(overlaps, String(width)).toEqual([]);
      const overflow = 'document.documentElement.scrollWidth - document.documentElement.clientWidth';
      expect(await page.evaluate(overflow)).toBe(0);
    }
  },
);
