import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import type { Page } from 'playwright-core';
import { BridgeProcess } from '../test/tool/bridge-process.js';
import { Engine } from '../test/tool/engine.js';
import { generateProject } from '../test/tool/many-models.js';
import { PageBrowser } from '../test/tool/page-browser.js';
import { cpuTimeMs, measureNode } from './measured-process.js';
import { formatSpread, spreadOf } from './spread.js';

/*
 * How long pages take with many runs and one large one: each page from its request to its last byte, the CPU that the server takes for it, and how
 * smoothly the large run's timeline is panned in a real browser. Small ones are copies of the engine's own runs, under other trace ids.
 */

const { values } = parseArgs({
  options: {
    runs: { type: 'string', default: '10000' },
    rounds: { type: 'string', default: '20' },
    /** JSONL of the large run; the real engine makes one under `exec`, with artifacts, where it is left out. */
    large: { type: 'string' },
    models: { type: 'string', default: '1500' },
    seconds: { type: 'string', default: '5' },
    dist: { type: 'string', default: 'dist' },
  },
});
const SMALL = ['stale-source', 'build-clean', 'test-command', 'parse'];
const RUNS_A_FILE = 250;
const WINDOW = { width: 1440, height: 900 };
const { large } = values;

const folder = mkdtempSync(join(tmpdir(), 'run-bridge-pages-'));
const data = join(folder, 'data');
const browser = await PageBrowser.open();
try {
  await importRuns(Number(values.runs));
  if (large === undefined) runEngine();
  const bridge = await BridgeProcess.start({ dataFolder: data, program: join(values.dist, 'main.js') });
  try {
    const page = await browser.page();
    await page.setViewportSize(WINDOW);
    await browser.signIn(page, bridge);
    // The latest to come has the largest number.
    const run = `/runs/${1000 + Number(values.runs) + 1}`;
    await timePages(page, bridge, run);
    await panTimeline(page, `${bridge.webUrl}${run}/timeline`);
  } finally {
    await bridge.remove();
  }
} finally {
  await browser.close();
  rmSync(folder, { recursive: true, force: true });
}

async function importRuns(count: number): Promise<void> {
  mkdirSync(data);
  const samples = SMALL.map((name) => readFileSync(`test/fixture/samples/${name}/otel.jsonl`, 'utf8'));
  const files: string[] = [];
  for (let from = 0; from < count; from += RUNS_A_FILE) {
    const file = join(folder, `${from}.jsonl`);
    const copies = Array.from({ length: Math.min(RUNS_A_FILE, count - from) }, (_, index) => {
      const traceId = (from + index + 1).toString(16).padStart(32, '0');
      const text = samples[(from + index) % samples.length] ?? '';
      return text.replaceAll(/"trace_id":\s?"[0-9a-f]{32}"/g, `"trace_id":"${traceId}"`);
    });
    writeFileSync(file, copies.join(''));
    files.push(file);
  }
  await measureNode([
    join(values.dist, 'main.js'),
    'import',
    ...files,
    ...(large === undefined ? [] : [large]),
    '--data-dir',
    data,
    '--log-level',
    'error',
  ]);
}

/** Builds a large project under `exec`, which keeps the run with its artifacts. */
function runEngine(): void {
  const engine = Engine.up('core');
  const project = generateProject(Number(values.models), { isTested: true });
  const options = ['--quiet', '--data-dir', data, '--flush-timeout', '30m'];
  execFileSync(process.execPath, [resolve(values.dist, 'main.js'), 'exec', ...options, '--', engine.dbt, 'build'], {
    cwd: project,
    env: { ...process.env, HOME: join(engine.home, 'home'), DBT_PROFILES_DIR: project },
    stdio: ['ignore', 'ignore', 'inherit'],
  });
  rmSync(project, { recursive: true });
  engine.remove();
}

/** Prints what each page takes, with the cookie of the browser. */
async function timePages(page: Page, { webUrl, child }: BridgeProcess, run: string): Promise<void> {
  const cookie = (await page.context().cookies()).map(({ name, value }) => `${name}=${value}`).join('; ');
  const ofRun = [
    '',
    '/nodes',
    '/timeline',
    '/timeline.json',
    '/graph',
    '/logs',
    '/artifacts',
    '/deliveries',
    '/compare',
  ];
  const paths = [
    '/',
    '/?status=failed',
    '/?text=relation',
    '/?page=100',
    '/jobs',
    '/models',
    '/models?view=dearest',
    '/webhooks',
    '/query',
    '/settings',
  ];
  console.log(
    `| page, of ${values.runs} runs and a large one (ms: median, smallest to largest) | first | then | CPU then |\n| --- | --- | --- | --- |`,
  );
  for (const path of [...paths, ...ofRun.map((tab) => `${run}${tab}`)]) {
    const tookMs: number[] = [];
    let cpuMs = 0;
    for (let round = 0; round <= Number(values.rounds); round++) {
      if (round === 1) cpuMs = cpuTimeMs(child.pid ?? 0);
      const startedMs = performance.now();
      const response = await fetch(`${webUrl}${path}`, { headers: { cookie, accept: 'text/html' } });
      await response.arrayBuffer();
      tookMs.push(performance.now() - startedMs);
      if (!response.ok) throw new Error(`${path} was answered ${response.status}`);
    }
    const [first = 0, ...others] = tookMs;
    const cpuMeanMs = (cpuTimeMs(child.pid ?? 0) - cpuMs) / Number(values.rounds);
    console.log(
      `| \`${path.replace(run, '/runs/{id}')}\` | ${first.toFixed(0)} | ${formatSpread(spreadOf(others), 0)} | ${cpuMeanMs.toFixed(0)} |`,
    );
  }
}

/** Prints the times between frames while the timeline is zoomed into and dragged to and fro. */
async function panTimeline(page: Page, url: string): Promise<void> {
  const startedMs = performance.now();
  await page.goto(url);
  const canvas = page.locator('canvas[data-drawn]');
  await canvas.waitFor();
  console.log(`\ntimeline drawn after ${(performance.now() - startedMs).toFixed(0)} ms`);
  const box = await canvas.boundingBox();
  if (box === null) throw new Error('the timeline is not there');
  const y = box.y + Math.min(200, box.height / 2);
  await canvas.focus();
  for (const zoom of ['whole', 'zoomed in']) {
    if (zoom !== 'whole') for (let turn = 0; turn < 8; turn++) await page.keyboard.press('+');
    await page.evaluate(`{
      globalThis.frames = [];
      let before = performance.now();
      const next = (now) => { globalThis.frames.push(now - before); before = now; globalThis.panning = requestAnimationFrame(next); };
      globalThis.panning = requestAnimationFrame(next);
    }`);
    const endMs = performance.now() + 1_000 * Number(values.seconds);
    await page.mouse.move(box.x + box.width / 2, y);
    await page.mouse.down();
    for (let step = 0; performance.now() < endMs; step++) {
      await page.mouse.move(box.x + box.width / 2 + 300 * Math.sin(step / 15), y + 60 * Math.sin(step / 23));
    }
    await page.mouse.up();
    const frames = await page.evaluate<number[]>(
      'cancelAnimationFrame(globalThis.panning), globalThis.frames.slice(1)',
    );
    const sorted = frames.toSorted((a, b) => a - b);
    const at = (part: number) => (sorted[Math.floor(sorted.length * part)] ?? 0).toFixed(1);
    console.log(
      `panning, ${zoom}: ${frames.length} frames, ms between them: median ${at(0.5)}, p95 ${at(0.95)}, most ${at(0.9999)}`,
    );
  }
}
