import { readFileSync } from 'node:fs';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { BridgeProcess } from '../tool/bridge-process.js';
import { PageBrowser } from '../tool/page-browser.js';
import { sendSample } from '../tool/send-sample.js';

let browser: PageBrowser;
let bridge: BridgeProcess;
beforeAll(async () => {
  browser = await PageBrowser.open();
  bridge = await BridgeProcess.start();
});
afterAll(async () => {
  await browser.close();
  await bridge.remove();
});

test('an example is answered with a table, bars and a download, and a mistake with what is wrong', async () => {
  await sendSample(bridge.otlpUrl, 'build-mixed');
  const page = await browser.page();
  await browser.signIn(page, bridge);
  await page.getByRole('heading', { name: 'Runs' }).waitFor();
  // Its Parquet is there once the run is over.
  await page.locator('.mark.bad').first().waitFor();
  await page.getByRole('link', { name: 'Query' }).click();
  await page.getByRole('link', { name: 'What is slow?' }).click();
  await page.getByRole('region', { name: 'Rows' }).getByRole('cell', { name: 'broken', exact: true }).waitFor();
  await page.getByRole('img', { name: 'Chart of avg_ms' }).waitFor();
  const download = page.waitForEvent('download');
  await page.getByRole('link', { name: 'Download CSV' }).click();
  expect(readFileSync(await (await download).path(), 'utf8')).toMatch(/^name,avg_ms,times\nbroken,/);
  const parquet = page.waitForEvent('download');
  await page.getByRole('link', { name: 'Download Parquet' }).click();
  expect(readFileSync(await (await parquet).path()).toString('latin1', 0, 4)).toBe('PAR1');
  await page.getByLabel('SQL (DuckDB').fill('SELECT nonsense FROM runs');
  await page.getByRole('button', { name: 'Run' }).click();
  await page.getByRole('alert').getByText('nonsense').first().waitFor();
  // The caret stands below the name: characters are as wide as each other, and no line is broken.
  const place = page.getByRole('alert').locator('pre');
  const [line = '', caret = ''] = ((await place.textContent()) ?? '').trimStart().split('\n');
  expect(line.slice(caret.indexOf('^'))).toMatch(/^nonsense FROM/);
  expect(await page.evaluate("getComputedStyle(document.querySelector('pre.place')).fontFamily")).toMatch(/mono/i);
  await page.setViewportSize({ width: 390, height: 844 });
  expect(await place.evaluate((pre) => Math.round(pre.clientHeight / 20))).toBe(2);
  expect(browser.complaints).toEqual([]);
});
