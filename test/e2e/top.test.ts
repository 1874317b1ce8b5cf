import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { sampleLines } from '../fake/sample-run.js';
import { BridgeProcess } from '../tool/bridge-process.js';
import { until } from '../tool/until.js';
import { runBridge } from './run-bridge.js';

const MAIN = new URL('../../dist/main.js', import.meta.url).pathname;

let dir: string;
const ended: (() => Promise<unknown>)[] = [];
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'run-bridge-top-'));
});
afterEach(async () => {
  for (const end of ended.splice(0).reverse()) await end();
  rmSync(dir, { recursive: true, force: true });
});

/** Starts a command that has got as far as its first nodes, with two more at work, and stays there. */
function startEngine(): ChildProcess {
  const lines = sampleLines('build-mixed-fusion');
  const isNode = (line: string) => line.includes('NodeProcessed') && line.includes('"SpanEnd"');
  const seventh = lines.flatMap((line, index) => (isNode(line) ? [index] : []))[6] ?? 0;
  writeFileSync(join(dir, 'half.jsonl'), `${lines.slice(0, seventh + 1).join('\n')}\n`);
  const engine = `
    require('fs').appendFileSync(process.env.DBT_OTEL_FILE_NAME, require('fs').readFileSync('half.jsonl'));
    setInterval(() => {}, 1000);`;
  const exec = [MAIN, 'exec', '--job', 'nightly', '--data-dir', 'data', '--', process.execPath, '-e', engine];
  const env = { PATH: process.env.PATH ?? '', HOME: dir };
  const child = spawn(process.execPath, exec, { cwd: dir, env, stdio: 'ignore' });
  ended.push(async () => {
    const exit = once(child, 'exit');
    if (child.exitCode === null && child.signalCode === null && child.kill('SIGTERM')) await exit;
  });
  return child;
}

const topOnce = () => runBridge(['top', '--once', '--data-dir', 'data'], { cwd: dir });
const HALF = /^1001 {2}nightly {2}7 of 21 nodes, (?:\d failed, )?running \w+ for .* so far$/m;

test.each(['exec', 'serve'])(
  'shows how far a run has come while %s has the data folder, and none afterwards',
  async (holder) => {
    if (holder === 'serve') {
      const bridge = await BridgeProcess.start({ dataFolder: join(dir, 'data') });
      ended.push(() => bridge.stop());
    }
    const engine = startEngine();
    await until('the nodes that are done', async () => HALF.test((await topOnce()).stdout));

    const command = [process.execPath, MAIN, 'top', '--data-dir', join(dir, 'data')];
    for (const key of ['q', 'ctrl-c']) {
      const python = ['test/tool/terminal.py', key, ...command];
      const { exit, output } = JSON.parse(execFileSync('python3', python, { encoding: 'utf8' }));
      expect(exit).toBe(0);
      expect(output).toMatch(/1001 {2}nightly {2}7 of 21 nodes, /);
      // The cursor is there again.
      expect(output.lastIndexOf('\u001b[?25h')).toBeGreaterThan(output.lastIndexOf('\u001b[?25l'));
    }

    engine.kill('SIGTERM');
    await until('its end', async () => (await topOnce()).stdout === 'no run is under way\n');
  },
);

test('writes lines where there is no terminal, until it is stopped', async () => {
  await runBridge(['token', 'create', '--name', 'a', '--permission', 'read_only', '--data-dir', 'data'], { cwd: dir });
  const child = spawn(process.execPath, [MAIN, 'top', '--data-dir', 'data'], { cwd: dir });
  let output = '';
  child.stdout.on('data', (chunk: Buffer) => {
    output += chunk.toString();
  });
  await until('a line', () => output.includes('\n'));
  child.kill('SIGINT');
  const [exitCode] = await once(child, 'exit');
  expect([exitCode, output]).toEqual([0, 'no run is under way\n']);
});

test('says where nothing is', async () => {
  expect(await topOnce()).toMatchObject({ exitCode: 1, stderr: expect.stringContaining('no run is in') });
});
