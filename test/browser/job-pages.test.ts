import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { BridgeProcess } from '../tool/bridge-process.js';
import { PageBrowser } from '../tool/page-browser.js';

const folder = mkdtempSync(join(tmpdir(), 'run-bridge-jobs-'));
const CONFIG = `projects: { shop: {} }
environments: { production: { project: shop } }
jobs:
  tick: { project: shop, environment: production, command: [[node, -e, "process.exit(3)"]] }
`;
let browser: PageBrowser;
let bridge: BridgeProcess;
beforeAll(async () => {
  const config = join(folder, 'run-bridge.yaml');
  writeFileSync(config, CONFIG);
  browser = await PageBrowser.open();
  bridge = await BridgeProcess.start({ args: ['--config', config] });
});
afterAll(async () => {
  await browser.close();
  await bridge.remove();
  rmSync(folder, { recursive: true });
});

test('a declared job is run and retried on its page, which shows how its runs ended', async () => {
  const page = await browser.page();
  await browser.signIn(page, bridge);
  await page.getByRole('link', { name: 'Jobs' }).click();
  await page.getByRole('button', { name: 'Run tick' }).click();
  await page.getByRole('heading', { name: /tick #\d+/ }).waitFor();
  await page.getByRole('link', { name: 'Jobs' }).click();
  await page.getByRole('link', { name: 'tick', exact: true }).click();
  // The page follows by itself.
  await page.getByRole('button', { name: /Retry run \d+/ }).click();
  await page.getByRole('heading', { name: /tick #\d+/ }).waitFor();
  await page.goto(`${bridge.webUrl}/jobs`);
  await page.getByRole('cell', { name: '2 of 2' }).waitFor();
  expect(await page.locator('.history rect.bad').count()).toBe(2);
  expect(browser.complaints).toEqual([]);
});
