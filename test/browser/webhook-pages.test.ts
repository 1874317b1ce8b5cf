import { readFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { BridgeProcess } from '../tool/bridge-process.js';
import { PageBrowser } from '../tool/page-browser.js';
import { sendSample } from '../tool/send-sample.js';

let browser: PageBrowser;
let bridge: BridgeProcess;
let endpoint: Server;
let status = 410;
beforeAll(async () => {
  browser = await PageBrowser.open();
  bridge = await BridgeProcess.start({ args: ['--webhook-allow', 'loopback'] });
  endpoint = createServer((request, response) => {
    request.resume().on('end', () => response.writeHead(status).end());
  });
  await new Promise<void>((resolve) => endpoint.listen(0, '127.0.0.1', resolve));
});
afterAll(async () => {
  await browser.close();
  await bridge.remove();
  endpoint.close();
});

test('an archived subscription says why; mended, it is reactivated, and what it missed is replayed', async () => {
  const token = readFileSync(join(bridge.dataFolder, 'admin-token'), 'utf8').trim();
  const { port } = endpoint.address() as AddressInfo;
  const made = await fetch(`${bridge.webUrl}/api/run-bridge/v1/webhooks`, {
    method: 'POST',
    headers: { Authorization: `Token ${token}` },
    body: JSON.stringify({
      name: 'pager',
      client_url: `http://127.0.0.1:${port}/`,
      event_types: ['job.run.completed'],
    }),
  });
  expect(made.status).toBe(201);
  const page = await browser.page();
  await browser.signIn(page, bridge);
  await page.getByRole('link', { name: 'Webhooks' }).click();
  await page.getByRole('link', { name: 'pager' }).click();
  await page.getByText('No events yet').waitFor();
  await sendSample(bridge.otlpUrl, 'build-clean');
  // The log follows by itself.
  await page.getByRole('cell', { name: /answered 410 after/ }).waitFor();
  await page.getByText('Why: the endpoint answered 410 Gone').waitFor();

  status = 200;
  await page.getByRole('button', { name: 'Send a test' }).click();
  await page.getByText('The test was delivered. It answered 200.').waitFor();
  await page.getByRole('button', { name: 'Reactivate' }).click();
  await page.getByText('It is active again.').waitFor();
  await page.getByRole('button', { name: 'Redeliver job.run.completed of run 1001' }).click();
  await page.getByText('1 event will be delivered again.').waitFor();
  await page.getByRole('cell', { name: /answered 200 after/ }).waitFor();
  // The run that caused it has it as well.
  await page.getByRole('link', { name: '#1001' }).click();
  await page.getByRole('link', { name: 'Deliveries' }).click();
  await page.getByRole('cell', { name: /answered 200 after/ }).waitFor();
  await page.getByRole('button', { name: 'Redeliver job.run.completed of run 1001 to pager' }).click();
  await page.getByText('1 event will be delivered again.').waitFor();
  await page.getByText('2 attempts before').waitFor();
  await page.getByRole('link', { name: 'job.run.completed' }).click();
  await page.getByRole('heading', { name: 'Attempt 3' }).waitFor();
  await page.getByRole('link', { name: 'pager' }).click();
  await page.getByRole('button', { name: 'Redeliver all that failed or were skipped' }).click();
  await page.getByText('Nothing was to be replayed').waitFor();
  expect(browser.complaints).toEqual([]);
});

test('a webhook is made, changed, paused and deleted by its forms, and shows what was sent and answered', async () => {
  const { port } = endpoint.address() as AddressInfo;
  status = 200;
  const page = await browser.page();
  await browser.signIn(page, bridge);
  await page.goto(`${bridge.webUrl}/webhooks`);
  await page.getByRole('link', { name: 'New webhook' }).click();
  // What belongs to another type is not there until that is chosen.
  const routingKey = page.getByLabel('Routing key');
  await page.getByText('What is sent').click();
  expect([await routingKey.isVisible(), await page.getByLabel('Body template').isVisible()]).toEqual([false, true]);
  await page.getByLabel('Type').selectOption('pagerduty');
  await page.getByText('https://events.pagerduty.com/v2/enqueue').waitFor();
  expect([await routingKey.isVisible(), await page.getByLabel('Body template').isVisible()]).toEqual([true, false]);
  await routingKey.fill('typed for another type');
  await page.getByLabel('Type').selectOption('http');
  // Outcomes are chosen where each run is reported, and not where changes are.
  await page.getByLabel('Only when a job begins to fail').check();
  expect(await page.getByLabel('a run fails').isVisible()).toBe(false);
  await page.getByLabel('Each time when').check();
  const [fails, atOnce] = [page.getByLabel('a run fails'), page.getByLabel('Report a failure at once')];
  expect([await fails.isChecked(), await atOnce.isVisible()]).toEqual([true, true]);
  await fails.uncheck();
  expect(await atOnce.isVisible()).toBe(false);
  await fails.check();
  await page.getByLabel('Name').fill('by hand');
  await page.getByLabel('Endpoint').fill('somewhere');
  await page.getByRole('button', { name: 'Create' }).press('Enter');
  await page.getByRole('alert').getByText('Endpoint: must be a URL that begins with http').waitFor();
  expect(await page.getByLabel('Name').inputValue()).toBe('by hand');
  await page.getByLabel('Endpoint').fill(`http://127.0.0.1:${port}/hook`);
  await page.getByRole('button', { name: 'Create' }).click();
  await page.getByRole('heading', { name: 'by hand was created' }).waitFor();
  expect(await page.locator('pre').textContent()).toMatch(/^\s*whsec_/);
  await page.getByRole('link', { name: 'Go to by hand' }).click();

  await sendSample(bridge.otlpUrl, 'build-mixed');
  await page.getByRole('link', { name: 'job.run.completed' }).click();
  await page.getByRole('region', { name: 'Attempt 1' }).getByText('"runStatus": "Errored"').waitFor();
  await page.getByText('webhook-signature:').waitFor();
  await page.getByRole('link', { name: 'by hand' }).click();
  await page.getByRole('link', { name: 'failed', exact: true }).click();
  await page.getByText('No events of this state.').waitFor();

  await page.getByRole('link', { name: 'Change' }).click();
  await page.getByText('Only some runs').click();
  await page.getByLabel('Environments').fill('production, staging');
  await page.getByRole('button', { name: 'Save' }).click();
  await page.getByText('environments: production, staging').waitFor();
  await page.getByRole('button', { name: 'Pause' }).click();
  await page.getByText('It is paused').waitFor();
  await page.getByRole('link', { name: 'Delete' }).click();
  await page.getByRole('button', { name: 'Delete' }).click();
  await page.getByText('It was deleted.').waitFor();
  expect(await page.getByRole('link', { name: 'by hand' }).count()).toBe(0);
});
