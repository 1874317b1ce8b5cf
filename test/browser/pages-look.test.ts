import { copyFileSync, mkdirSync, mkdtempSync, readFileSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import type { Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { runBridge } from '../e2e/run-bridge.js';
import { sampleFolder } from '../fake/sample-run.js';
import { BridgeProcess } from '../tool/bridge-process.js';
import { cacheFolder } from '../tool/cache-folder.js';
import { hostileLines, hugeLines } from '../tool/hostile-run.js';
import { PageBrowser } from '../tool/page-browser.js';

const require = createRequire(import.meta.url);
const AXE = readFileSync(require.resolve('axe-core/axe.min.js'), 'utf8');
/** What axe answers, as far as it is looked at. */
interface AxeResults {
  readonly violations: readonly { readonly id: string; readonly nodes: readonly { readonly html: string }[] }[];
}
/** Where the pictures of this test lie afterwards, for people to look at. */
const PICTURES = join(cacheFolder(), 'page-pictures');
const QUERY = `/query?${new URLSearchParams({ sql: 'SELECT name, duration_ms FROM nodes ORDER BY 2 DESC NULLS LAST LIMIT 30' })}`;
/** Those of them that `PICTURES=write` puts into docs/images, by their names there. */
const IN_DOCS: Readonly<Record<string, string>> = {
  '/jobs/4001': 'job',
  '/models?view=dearest': 'models',
  '/webhooks/new': 'webhook',
  [QUERY]: 'query',
  '/settings': 'settings',
  '/runs/1006/nodes': 'nodes',
  '/runs/1006/timeline': 'timeline',
  '/runs/1004/graph': 'graph',
  '/runs/1006/logs': 'logs',
  '/runs/1006/compare': 'compare',
};
/** In this order they get the numbers from 1001. */
const RUNS = ['build-clean', 'stale-source', 'interrupted', 'build-mixed', 'big-build', 'big-build-trace', 'fail-fast'];
const HOSTILE_RUN = 1008;
const HUGE_RUN = 1009;

const WIDTHS = [1440, 390];
/** What axe checks in each of them: all of its rules in the first, those about colours in the other. */
const COLOR_SCHEMES = [
  ['light', undefined],
  ['dark', ['color-contrast']],
] as const;
const OF_RUN = ['', '/nodes', '/timeline', '/logs', '/artifacts', '/compare', '/graph', '/deliveries'];

let browser: PageBrowser;
let bridge: BridgeProcess;
beforeAll(async () => {
  browser = await PageBrowser.open();
  const dataFolder = mkdtempSync(join(tmpdir(), 'run-bridge-look-'));
  const hostile = { hostile: hostileLines(), huge: hugeLines() };
  for (const [name, lines] of Object.entries(hostile)) {
    // Each is a run of its own, not more of the sample's.
    const traceId = (name === 'huge' ? 'b' : 'a').repeat(32);
    const text = `${lines.join('\n')}\n`.replaceAll(/"trace_id":\s?"[0-9a-f]{32}"/g, `"trace_id":"${traceId}"`);
    writeFileSync(join(dataFolder, `${name}.jsonl`), text);
  }
  const files = [
    ...RUNS.map((name) => resolve(sampleFolder(name), 'otel.jsonl')),
    ...Object.keys(hostile).map((name) => join(dataFolder, `${name}.jsonl`)),
  ];
  for (const file of files) {
    expect(
      await runBridge(['import', file], { cwd: dataFolder, env: { RUN_BRIDGE_DATA_DIR: dataFolder } }),
    ).toMatchObject({ exitCode: 0 });
  }
  // A name that no window of a telephone has room for, as generated tests have them.
  const compiled = join(dataFolder, 'artifacts', '1004', '1', 'compiled', 'shop', 'models', 'schema.yml');
  mkdirSync(compiled, { recursive: true });
  writeFileSync(join(compiled, `accepted_values_${'status__'.repeat(10)}.sql`), 'select 1\n');
  // Its graph is drawn from what the engine wrote of the project.
  copyFileSync('test/fixture/manifest.json', join(dataFolder, 'artifacts', '1004', '1', 'manifest.json'));
  bridge = await BridgeProcess.start({ dataFolder });
  mkdirSync(PICTURES, { recursive: true });
});
afterAll(async () => {
  await browser.close();
  await bridge.remove();
});
afterEach(() => expect(browser.complaints.splice(0)).toEqual([]));

/** What axe, which is in the page, finds there; by all of its rules where none are named. */
async function findings(page: Page, rules?: readonly string[]): Promise<readonly string[]> {
  const { violations } = await page.evaluate<AxeResults>(`axe.run(${JSON.stringify({ runOnly: rules })})`);
  return violations.flatMap(({ id, nodes }) => nodes.map(({ html }) => `${id}: ${html.slice(0, 200)}`));
}

/** How much wider a page is than its window. */
function overflow(page: Page): Promise<number> {
  return page.evaluate('document.documentElement.scrollWidth - document.documentElement.clientWidth');
}

describe.each(WIDTHS)('in a window of %i px', (width) => {
  let page: Page;
  beforeAll(async () => {
    page = await browser.page();
    await page.setViewportSize({ width, height: 900 });
    await browser.signIn(page, bridge);
  });
  afterAll(() => page.context().close());

  it.each([
    '/',
    '/jobs',
    '/jobs/4001',
    '/query',
    QUERY,
    '/webhooks',
    '/webhooks/new',
    '/settings',
    '/models',
    '/models?view=dearest',
    '/models?view=growing',
    `/runs/${HOSTILE_RUN}/delete`,
    ...[1001, 1002, 1003, 1004, 1006, 1007, HOSTILE_RUN, HUGE_RUN].flatMap((run) =>
      OF_RUN.map((tab) => `/runs/${run}${tab}`),
    ),
  ])('%s is accessible, and no wider than the window', async (path) => {
    const response = await page.goto(`${bridge.webUrl}${path}`);
    expect(response?.status()).toBe(200);
    if (path === '/runs/1006/timeline') await page.locator('canvas[data-drawn]').waitFor();
    await page.evaluate(AXE);
    const pictureName = path.replaceAll(/\W+/g, '-').slice(1) || 'runs';
    const name = IN_DOCS[path];
    for (const [colorScheme, rules] of COLOR_SCHEMES) {
      await page.emulateMedia({ colorScheme });
      const picture = await page.screenshot();
      writeFileSync(join(PICTURES, `${pictureName}-${colorScheme}-${width}.png`), picture);
      const isForDocs = process.env.PICTURES === 'write' && colorScheme === 'light' && width === 1440;
      if (isForDocs && name !== undefined) writeFileSync(`docs/images/${name}.png`, picture);
      expect(await findings(page, rules), colorScheme).toEqual([]);
    }
    expect(await overflow(page)).toBe(0);
    // What becomes cards is read without scrolling to the side.
    if (width === 390) {
      expect(
        await page.evaluate(
          `[...document.querySelectorAll('.cards')].filter((one) => one.scrollWidth > one.clientWidth).length`,
        ),
      ).toBe(0);
    }
  });
});

describe('the nodes of a large run', () => {
  it('are found while somebody types, without a new page, and the address follows', async () => {
    const page = await browser.page();
    await browser.signIn(page, bridge);
    await page.goto(`${bridge.webUrl}/runs/1006/nodes`);
    await page.getByText('1,164 nodes, page 1 of 12').waitFor();
    await page.keyboard.press('/');
    await page.keyboard.type('mart_118');
    await page.getByText(/nodes, page 1 of 1$/).waitFor();
    expect(page.url()).toContain('text=mart_118');
    expect(await page.evaluate('document.activeElement.name')).toBe('text');
    await page.getByLabel('Outcome').selectOption('error');
    await page.getByText(/1 node, page 1 of 1/).waitFor();
    await page.getByRole('link', { name: 'model mart_118' }).click();
    await page.getByRole('heading', { name: /model mart_118.*error/ }).waitFor();
    await page.getByLabel('Compiled SQL of model mart_118 round the error').waitFor();
    await page.context().close();
  });

  it('are sorted and filtered without a script', async () => {
    const page = await browser.page(false);
    await browser.signIn(page, bridge);
    await page.goto(`${bridge.webUrl}/runs/1006/nodes`);
    await page.getByLabel('Outcome').selectOption('failed');
    await page.getByRole('button', { name: 'Show' }).click();
    await page.getByText('10 nodes, page 1 of 1').waitFor();
    await page.getByRole('link', { name: 'Work' }).click();
    await page.getByRole('columnheader', { name: 'Work' }).waitFor();
    expect(page.url()).toContain('outcome=failed&sort=work');
    await page.context().close();
  });
});

describe('the log records of a large run', () => {
  it('are found while somebody types, shown among the others, and copied as text', async () => {
    const page = await browser.page();
    await page.context().grantPermissions(['clipboard-read', 'clipboard-write']);
    await browser.signIn(page, bridge);
    await page.goto(`${bridge.webUrl}/runs/1006/logs`);
    await page.getByText('4 records, page 1 of 1').waitFor();
    await page.getByRole('link', { name: 'All 5,789' }).click();
    await page.getByText('5,789 records, page 1 of 29').waitFor();
    await page.getByLabel('Node').fill('mart_118');
    await page.getByText(/ records, page 1 of 1$/).waitFor();
    expect(page.url()).toContain('node=mart_118');
    await page.getByRole('link', { name: /^Error/ }).click();
    await page.getByText('1 record, page 1 of 1').waitFor();
    await page.getByRole('button', { name: 'Copy all of them as text' }).click();
    await page.getByRole('button', { name: 'Copy all of them as text' }).getByText('Copied').waitFor();
    expect(await page.evaluate('navigator.clipboard.readText()')).toMatch(
      /ERROR {2}model\.retail\.mart_118: Database Error/,
    );
    await page.getByTitle(/show what was beside it$/).click();
    await page.locator('tr:target').getByText('Database Error in model mart_118').waitFor();
    await page.context().close();
  });

  it('are filtered without a script', async () => {
    const page = await browser.page(false);
    await browser.signIn(page, bridge);
    await page.goto(`${bridge.webUrl}/runs/1006/logs?severity=debug`);
    await page.getByRole('searchbox', { name: 'Text' }).fill('compiled code mart_1 ');
    await page.getByRole('button', { name: 'Show' }).click();
    await page.getByText(/^\d+ records, page 1 of 1$/).waitFor();
    await page.getByRole('link', { name: 'Without the text' }).click();
    await page.getByText('2,259 records, page 1 of 12').waitFor();
    await page.context().close();
  });
});

describe('the comparison of two large runs', () => {
  it('is with the run that somebody chooses, without a script', async () => {
    const page = await browser.page(false);
    await browser.signIn(page, bridge);
    await page.goto(`${bridge.webUrl}/runs/1006/compare`);
    await page.getByLabel('Compare with').selectOption('1005');
    await page.getByRole('button', { name: 'Compare' }).click();
    await page.getByText('4.2 s more than #1005').waitFor();
    // All of it was slower, for want of processors; no node was by itself.
    await page.getByText(/ nodes were in progress at a time, /).waitFor();
    await page.context().close();
  });
});

describe('the timeline of a large run', () => {
  it('is drawn, searched, walked through with the keyboard, and leads to a node', async () => {
    const page = await browser.page();
    await browser.signIn(page, bridge);
    await page.goto(`${bridge.webUrl}/runs/1006/timeline`);
    await page.locator('canvas[data-drawn]').waitFor();
    expect(await page.locator('canvas').getAttribute('data-drawn')).toBe('1164');
    await page.getByLabel('Find a node').fill('mart_118');
    const status = page.getByRole('status');
    await status.getByText(/^4 found\. /).waitFor();
    await page.locator('canvas').focus();
    for (const key of ['ArrowRight', '+', '+', 'ArrowLeft', '0']) await page.keyboard.press(key);
    await status.getByText(/mart_118.*, \d+ quer(y|ies) of|of work from/).waitFor();
    await page.keyboard.press('Enter');
    await page.getByRole('heading', { name: /mart_118/, level: 2 }).waitFor();
    await page.context().close();
  });

  it('goes from failure to failure, groups its lanes, and keeps what is in the window in the address', async () => {
    const page = await browser.page();
    await browser.signIn(page, bridge);
    await page.goto(`${bridge.webUrl}/runs/1006/timeline`);
    const canvas = page.locator('canvas[data-drawn]');
    await canvas.focus();
    const status = page.getByRole('status');
    await page.keyboard.press('n');
    await status.getByText(/^1 of 12 failed\. /).waitFor();
    const first = await status.textContent();
    await page.getByRole('button', { name: 'Next failure' }).click();
    await status.getByText(/^2 of 12 failed\. /).waitFor();
    expect(await status.textContent()).not.toBe(first);
    await page.getByLabel('Lanes').selectOption('type');
    await page.waitForURL(/by=type/);
    await page.waitForURL(/node=(model|test)\./);
    // Across the times above: as much as was dragged over is the whole window then.
    const box = await canvas.boundingBox();
    if (box === null) throw new Error('the timeline is not there');
    await page.mouse.move(box.x + box.width * 0.5, box.y + 8);
    await page.mouse.down();
    await page.mouse.move(box.x + box.width * 0.75, box.y + 8, { steps: 5 });
    await page.mouse.up();
    await page.waitForURL(/from=\d+&to=\d+|to=\d+.*from=\d+/);
    const { searchParams } = new URL(page.url());
    const [from, to] = [Number(searchParams.get('from')), Number(searchParams.get('to'))];
    expect(to / from).toBeCloseTo(1.5, 1);
    await page.reload();
    await canvas.waitFor();
    const tip = page.locator('#timeline-tip');
    for (let at = 0; at < 200 && !(await tip.isVisible()); at++) {
      await page.mouse.move(box.x + box.width * ((at % 50) / 50), box.y + 95 + 20 * Math.floor(at / 50));
    }
    expect(await tip.textContent()).toMatch(/: \w+, .* of work from .* on.*\nthis part: /s);
    expect(await page.getByLabel('Lanes').inputValue()).toBe('type');
    expect(new URL(page.url()).searchParams.get('from')).toBe(String(from));
    await page.context().close();
  });
});

describe('the panel of a node', () => {
  it('opens beside the list, is walked by arrow keys and closed by Escape, and the address follows', async () => {
    const page = await browser.page();
    await page.setViewportSize({ width: 1440, height: 900 });
    await browser.signIn(page, bridge);
    await page.goto(`${bridge.webUrl}/runs/1006/nodes?sort=name`);
    await page.evaluate('document.isSamePage = true');
    const links = page.locator('a[data-panel="open"]');
    const heading = page.locator('#node');
    const idAt = async (at: number) => (await links.nth(at).getAttribute('title')) ?? '';
    await links.nth(1).click();
    await heading.waitFor();
    const isBeside = async () => {
      const [panel, list] = await Promise.all(['.panel', '#found'].map((part) => page.locator(part).boundingBox()));
      return panel !== undefined && list != null && (panel?.x ?? 0) >= list.x + list.width;
    };
    expect(await isBeside()).toBe(true);
    const shows = (id: string) =>
      page
        .locator('.panel > .hint')
        .filter({ hasText: new RegExp(`^${id} Close$`) })
        .waitFor();
    await shows(await idAt(1));
    await page.keyboard.press('ArrowDown');
    await shows(await idAt(2));
    expect(new URL(page.url()).searchParams.get('node')).toBe(await idAt(2));
    await page.keyboard.press('ArrowUp');
    await shows(await idAt(1));
    expect(await page.locator('a[aria-current="true"]').getAttribute('title')).toBe(await idAt(1));
    await page.keyboard.press('Escape');
    await heading.waitFor({ state: 'detached' });
    expect(new URL(page.url()).search).toBe('?sort=name');
    // All of it in one page, whose list keeps the focus.
    expect(await page.evaluate('document.isSamePage')).toBe(true);
    await page.goBack();
    await page.context().close();
  });
});

it('shows the last runs of a node in its panel, each with a link to it there', async () => {
  const page = await browser.page();
  await browser.signIn(page, bridge);
  // Read once, so that what comes after it is compared with it.
  await page.goto(`${bridge.webUrl}/runs/1005`);
  await page.goto(`${bridge.webUrl}/runs/1006/nodes?node=model.retail.mart_118`);
  await page.getByRole('heading', { name: 'Last 2 runs' }).waitFor();
  await page.getByRole('link', { name: /^#1005: / }).click();
  await page.waitForURL(/runs\/1005\/nodes\?node=model.retail.mart_118/);
  await page.getByRole('heading', { name: /mart_118/, level: 2 }).waitFor();
  await page.context().close();
});

describe('the page of a failed run', () => {
  // What failed, the cause, where, and what to do stand in the first window of a laptop.
  it.each([
    [1004, 'model broken', 'Referenced column "nonexistent_column" not found', 'dbt build --select broken+'],
    [1006, 'model mart_118', 'Referenced column "no_such_column" not found', 'dbt build --select mart_118+'],
    [1002, 'source', 'last updated', null],
  ])('of #%i says above the fold what broke, why and what to do', async (run, name, cause, command) => {
    const page = await browser.page();
    await page.setViewportSize({ width: 1440, height: 900 });
    await browser.signIn(page, bridge);
    await page.goto(`${bridge.webUrl}/runs/${run}`);
    for (const text of [name, cause, command]) {
      if (text === null) continue;
      // What lies in a closed part has a box as well.
      const shown = page.locator('.troubles').getByText(text).filter({ visible: true }).first();
      const box = await shown.boundingBox();
      expect((box?.y ?? 9_999) + (box?.height ?? 0), text).toBeLessThan(900);
    }
    await page.context().close();
  });

  it('gives the command to the clipboard', async () => {
    const page = await browser.page();
    await page.context().grantPermissions(['clipboard-read', 'clipboard-write']);
    await browser.signIn(page, bridge);
    await page.goto(`${bridge.webUrl}/runs/1006`);
    await page.getByRole('button', { name: 'Copy: Run model mart_118 again' }).click();
    await page.getByRole('button', { name: 'Copy: Run model mart_118 again' }).getByText('Copied').waitFor();
    expect(await page.evaluate('navigator.clipboard.readText()')).toBe('dbt build --select mart_118+');
    await page.context().close();
  });

  it.each([HOSTILE_RUN, HUGE_RUN])('#%i runs nothing of what its names and errors say', async (run) => {
    const page = await browser.page();
    const dialogs: string[] = [];
    page.on('dialog', (dialog) => {
      dialogs.push(dialog.message());
      void dialog.dismiss();
    });
    await browser.signIn(page, bridge);
    for (const tab of OF_RUN) {
      await page.goto(`${bridge.webUrl}/runs/${run}${tab}`);
      expect((await page.content()).length).toBeLessThan(2_000_000);
      expect(await page.locator('main script, main img, main a[href^="javascript"]').count()).toBe(0);
    }
    expect(dialogs).toEqual([]);
    await page.context().close();
  });
});
