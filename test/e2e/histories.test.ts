import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { BridgeProcess } from '../tool/bridge-process.js';
import { sampleCommand } from '../tool/sample-command.js';
import { runBridge } from './run-bridge.js';

let bridge: BridgeProcess;
let folder: string;
let runs = 0;
beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'run-bridge-histories-'));
  bridge = await BridgeProcess.start();
});
afterEach(async () => {
  await bridge.remove();
  rmSync(folder, { recursive: true, force: true });
});

/** Runs a sample's command. */
const engine = async (sample: string, ...options: readonly string[]) => {
  runs += 1;
  const command = ['exec', '--to', bridge.otlpUrl, ...options, '--', ...sampleCommand(sample, runs)];
  await runBridge(command, { cwd: folder });
};
const page = async (path: string) => {
  const token = readFileSync(join(bridge.dataFolder, 'admin-token'), 'utf8').trim();
  const headers = { cookie: `run_bridge_token=${token}`, accept: 'text/html' };
  return await (await fetch(bridge.webUrl + path, { headers })).text();
};

test('a run is compared with the last one of its job that did well and had a command in common', async () => {
  for (const sample of ['build-clean', 'compile', 'parse', 'build-mixed']) await engine(sample, '--job', 'nightly');
  const html = await page('/runs/1004/compare');
  expect(html).toContain('<option value="1001" selected');
  expect(html).toMatch(/It took .* (?:more|less) than #1001\./);
  expect(await page('/runs/1002/compare')).toContain('There is no earlier run of this job');
});

test('the list shows beside the length of a run those of its own project, and of no job those of its own command', async () => {
  for (const project of ['one', 'two', 'two', 'two'])
    await engine('build-clean', '--job', 'nightly', '--project', project);
  for (const sample of ['build-clean', 'parse', 'parse', 'parse']) await engine(sample);
  const html = await page('/');
  const counts = Array.from(html.matchAll(/Durations of (\d+) runs of the job/g), ([, count]) => count);
  expect(counts).toEqual(['3', '3']);
});
