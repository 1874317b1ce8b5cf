import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { runBridge } from '../e2e/run-bridge.js';
import { sampleFolder } from '../fake/sample-run.js';
import { hostileLines } from '../tool/hostile-run.js';
import { PageBrowser } from '../tool/page-browser.js';

let dir: string;
let browser: PageBrowser;
beforeAll(async () => {
  dir = mkdtempSync(join(tmpdir(), 'run-bridge-report-page-'));
  writeFileSync(join(dir, 'hostile.jsonl'), `${hostileLines().join('\n')}\n`);
  browser = await PageBrowser.open();
});
afterAll(async () => {
  await browser?.close();
  rmSync(dir, { recursive: true, force: true });
});

test.each([
  ['a failed run', resolve(sampleFolder('build-mixed-fusion'), 'otel.jsonl'), 'model broken'],
  ['texts that are script and markup', 'hostile.jsonl', '<script>'],
])(
  'a report as HTML of %s is one file that loads nothing, runs nothing and complains of nothing',
  async (_of, file, shown) => {
    const args = ['report', file, '--format', 'html', '--redaction', 'off'];
    const { exitCode, stdout } = await runBridge(args, { cwd: dir });
    expect(exitCode).toBe(0);
    const path = join(dir, 'report.html');
    writeFileSync(path, stdout);
    const page = await browser.page();
    const asked: string[] = [];
    const said: string[] = [];
    page.on('request', (request) => asked.push(request.url()));
    page.on('console', (message) => said.push(message.text()));
    page.on('dialog', async (dialog) => {
      said.push(dialog.message());
      await dialog.dismiss();
    });
    const url = pathToFileURL(path).href;
    await page.goto(url, { waitUntil: 'load' });
    expect(await page.locator('body').textContent()).toContain(shown);
    expect(await page.locator('svg rect').count()).toBeGreaterThan(3);
    // What is in sight first is what failed.
    const top = await page.locator('h2').first().boundingBox();
    expect(top?.y).toBeLessThan(600);
    expect({ asked, said, complaints: browser.complaints }).toEqual({ asked: [url], said: [], complaints: [] });
  },
);
