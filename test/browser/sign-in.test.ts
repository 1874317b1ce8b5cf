import { afterAll, beforeAll, expect, test } from 'vitest';
import { runBridge } from '../e2e/run-bridge.js';
import { BridgeProcess } from '../tool/bridge-process.js';
import { PageBrowser } from '../tool/page-browser.js';

let bridge: BridgeProcess;
let browser: PageBrowser;
beforeAll(async () => {
  bridge = await BridgeProcess.start();
  browser = await PageBrowser.open();
});
afterAll(async () => {
  await browser?.close();
  await bridge?.remove();
});

const link = async () => {
  const { stdout } = await runBridge(['open', '--print', '--data-dir', bridge.dataFolder], { cwd: bridge.dataFolder });
  return stdout.trim();
};

test.each([true, false])(
  'a link signs a browser in, and leaves no secret in its address (scripts: %s)',
  async (hasScript) => {
    const url = await link();
    const page = await browser.page(hasScript);
    await page.goto(url);
    await page.getByRole('heading', { name: 'Runs' }).waitFor();
    expect(page.url()).toBe(`${bridge.webUrl}/`);
    const referrer = await page.evaluate<string>('document.referrer');
    expect(referrer).not.toContain('link=');
    await page.goBack();
    expect(page.url()).not.toContain('link=');

    const other = await browser.page(hasScript);
    await other.goto(url);
    await other.getByRole('alert').waitFor();
    expect(await other.getByRole('alert').textContent()).toContain('no longer signs in');
    expect(browser.complaints).toEqual([]);
  },
);

test('a link that another site shows signs in as well, though the browser keeps the cookie back at first', async () => {
  const url = await link();
  const page = await browser.page();
  await page.route('http://chat.example/', (route) =>
    route.fulfill({ contentType: 'text/html', body: `<a href="${url}">run-bridge</a>` }),
  );
  await page.goto('http://chat.example/');
  await page.getByRole('link').click();
  await page.getByRole('heading', { name: 'Runs' }).waitFor();
});
