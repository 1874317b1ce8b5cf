import { mkdtempSync, readFileSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { runBridge } from '../e2e/run-bridge.js';
import { sampleFolder } from '../fake/sample-run.js';
import { BridgeProcess } from '../tool/bridge-process.js';
import { PageBrowser } from '../tool/page-browser.js';
import { sendSample } from '../tool/send-sample.js';
import { until } from '../tool/until.js';

const PICTURE = { width: 1200, height: 640 };
/** What names the runs of the pictures. */
const JOBS = `projects: { shop: {} }
environments: { production: { project: shop, match: { command: "*" } } }
jobs:
  nightly: { project: shop, environment: production, match: { command: "*build*" } }
  checks: { project: shop, environment: production, match: { command: "*test*" } }
  hourly: { project: shop, environment: production, match: { command: "*" } }
`;
const SHOWN = ['build-clean', 'stale-source', 'interrupted', 'test-command', 'build-mixed'];

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
afterEach(() => expect(browser.complaints.splice(0)).toEqual([]));

test('who has signed in sees a run come without doing anything, and why it failed', async () => {
  const page = await browser.page();
  await browser.signIn(page, bridge);
  expect(await page.getByText('No run has come yet').isVisible()).toBe(true);
  await sendSample(bridge.otlpUrl, 'build-mixed');
  await page.getByRole('link', { name: '#1001' }).click();
  // Whatever it was when the page was opened.
  await page.getByRole('heading', { name: /adhoc #1001.*failed/ }).waitFor();
  await page.getByText(/1 error, 2 failed, 3 skipped, 1 warned, 13 success, 1 no-op/).waitFor();
  expect(await page.getByText('Referenced column "nonexistent_column" not found').first().isVisible()).toBe(true);
  expect(await page.getByRole('heading', { name: 'model broken' }).isVisible()).toBe(true);
  expect(await page.getByLabel('Compiled SQL of model broken round the error').textContent()).toContain(
    '▸ Error in line 3 select nonexistent_column from',
  );
  await page.getByRole('heading', { name: /test status_strict.*1 row/ }).waitFor();

  await page.locator('#download summary').click();
  const download = page.waitForEvent('download');
  await page.getByRole('link', { name: 'Download OTel log (Parquet)' }).click();
  const bytes = readFileSync(await (await download).path());
  expect(bytes.subarray(0, 4).toString()).toBe('PAR1');

  await page.getByRole('link', { name: 'every node with its errors' }).click();
  expect(await page.textContent('body')).toContain('"model.shop.broken"');
});

test('pages work without a script: the list is filtered, and signing out ends it', async () => {
  const page = await browser.page(false);
  await browser.signIn(page, bridge);
  await page.getByLabel('Status').selectOption('success');
  await page.getByRole('button', { name: 'Show' }).click();
  await page.getByText('No run is like that.').waitFor();
  await page.getByLabel('Status').selectOption('failed');
  await page.getByLabel('Job, environment, project, name, branch or error').fill('ADHOC');
  await page.getByRole('button', { name: 'Show' }).click();
  await page.getByRole('link', { name: '#1001' }).waitFor();
  await page.getByRole('button', { name: 'Sign out' }).click();
  await page.getByLabel('Token').waitFor();
  await page.goto(bridge.webUrl);
  expect(await page.getByLabel('Token').isVisible()).toBe(true);
});

test('a link in a chat leads who has signed in to the run, though the browser keeps the cookie back at first', async () => {
  const page = await browser.page();
  await browser.signIn(page, bridge);
  // `localhost` is another site than `127.0.0.1`.
  const chat = await serveHtml(`<a href="${bridge.webUrl}/runs/1001">open</a>`);
  await page.goto(`http://localhost:${(chat.address() as AddressInfo).port}/`);
  await page.getByRole('link', { name: 'open' }).click();
  await page.getByRole('heading', { name: /adhoc #1001/ }).waitFor();
  chat.close();
});

test('who has not signed in gets to the run that a link names after doing so', async () => {
  const page = await browser.page();
  await page.goto(`${bridge.webUrl}/runs/1001`);
  await page.getByLabel('Token').fill('rbt_wrong');
  await page.getByRole('button', { name: 'Sign in' }).click();
  await page.getByRole('alert').waitFor();
  await page.getByLabel('Token').fill(readFileSync(`${bridge.dataFolder}/admin-token`, 'utf8'));
  await page.getByRole('button', { name: 'Sign in' }).click();
  await page.getByRole('heading', { name: /adhoc #1001/ }).waitFor();
});

test('a run is compared with one that had nodes, rather than with a later one that failed before its first', async () => {
  const dataFolder = mkdtempSync(join(tmpdir(), 'run-bridge-compared-'));
  const env = { RUN_BRIDGE_DATA_DIR: dataFolder };
  const lines = readFileSync(join(sampleFolder('build-mixed'), 'otel.jsonl'), 'utf8')
    .trimEnd()
    .split('\n');
  const early = lines.filter((line) => !/Node(Processed|Evaluated)|"unique_id"/.test(line));
  for (const [index, kept] of [lines, early, lines].entries()) {
    const text = kept
      .join('\n')
      .replaceAll(/"trace_id":"[0-9a-f]{32}"/g, `"trace_id":"${String(index + 1).repeat(32)}"`)
      .replaceAll(
        /_unix_nano":"(\d+)"/g,
        (_, nano) => `_unix_nano":"${BigInt(nano) + BigInt(index) * 60_000_000_000n}"`,
      );
    writeFileSync(join(dataFolder, `${index}.jsonl`), `${text}\n`);
    expect(await runBridge(['import', `${index}.jsonl`], { cwd: dataFolder, env })).toMatchObject({ exitCode: 0 });
  }
  const compared = await BridgeProcess.start({ dataFolder, env });
  try {
    const page = await browser.page();
    await browser.signIn(page, compared);
    await page.goto(`${compared.webUrl}/runs/1002/nodes`);
    await page.getByText('No node ran in this step.').waitFor();
    await page.goto(`${compared.webUrl}/runs/1003/compare`);
    expect(await page.getByLabel('Compare with').inputValue()).toBe('1001');
  } finally {
    await compared.remove();
  }
});

test('the pictures of README are of these pages', async () => {
  const dataFolder = mkdtempSync(join(tmpdir(), 'run-bridge-pictures-'));
  const env = { RUN_BRIDGE_CONFIG: join(dataFolder, 'run-bridge.yaml'), RUN_BRIDGE_DATA_DIR: dataFolder };
  writeFileSync(env.RUN_BRIDGE_CONFIG, JOBS);
  const files = SHOWN.map((name) => resolve(sampleFolder(name), 'otel.jsonl'));
  expect(await runBridge(['import', ...files], { cwd: dataFolder, env })).toMatchObject({ exitCode: 0 });
  const shown = await BridgeProcess.start({ dataFolder, env });
  try {
    const page = await browser.page();
    await page.setViewportSize(PICTURE);
    await browser.signIn(page, shown);
    // Causes and bars are there when the runs have been measured, behind the first view.
    await until('the measures of all runs', async () => {
      await page.reload();
      await page.getByText(/5 runs, page 1 of 1/).waitFor();
      return (await page.locator('svg.counts').count()) === SHOWN.length;
    });
    takePicture('runs', await page.screenshot());
    await page
      .getByRole('row', { name: /failed nightly/ })
      .getByRole('link')
      .click();
    await page.getByRole('heading', { name: /nightly #\d+.*failed/ }).waitFor();
    takePicture('run', await page.screenshot());
  } finally {
    await shown.remove();
  }
});

/** Writes the picture where that was asked for, and looks at the one that is there. */
function takePicture(name: string, taken: Buffer): void {
  const file = new URL(`../../docs/images/${name}.png`, import.meta.url);
  if (process.env.PICTURES === 'write') writeFileSync(file, taken);
  for (const png of [taken, readFileSync(file)]) {
    expect([png.readUInt32BE(16), png.readUInt32BE(20)]).toEqual([PICTURE.width, PICTURE.height]);
    // A page without content, or an error, makes a much smaller one.
    expect(png.length).toBeGreaterThan(30_000);
  }
}

function serveHtml(html: string): Promise<Server> {
  const server = createServer((_request, response) => response.setHeader('Content-Type', 'text/html').end(html));
  return new Promise((resolve) => server.listen(0, 'localhost', () => resolve(server)));
}
