import { type ChildProcess, spawn } from 'node:child_process';
import {
  appendFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { BridgeProcess } from '../tool/bridge-process.js';
import { traceIdsIn } from '../tool/trace-ids.js';
import { until } from '../tool/until.js';
import { runBridge } from './run-bridge.js';

const main = new URL('../../dist/main.js', import.meta.url).pathname;
const engine = new URL('../tool/stand-in-engine.mjs', import.meta.url).pathname;
const sample = new URL('../fixture/samples/parse', import.meta.url).pathname;
const failed = new URL('../fixture/samples/build-mixed/otel.jsonl', import.meta.url).pathname;
const lines = readFileSync(join(sample, 'otel.jsonl'), 'utf8');
const [, sampleTrace = ''] = /"trace_id":"([0-9a-f]{32})"/.exec(lines) ?? [];
const traceOf = (number: number) => number.toString(16).padStart(32, 'a');
const linesOf = (number: number) => lines.replaceAll(sampleTrace, traceOf(number));

let dir: string;
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'run-bridge-user-file-'));
  mkdirSync(join(dir, 'project', 'models'), { recursive: true });
  writeFileSync(join(dir, 'project', 'dbt_project.yml'), 'name: shop\n');
});
afterEach(() => rmSync(dir, { recursive: true, force: true }));

const data = () => join(dir, 'data');
const env = () => ({ PATH: process.env.PATH ?? '', HOME: dir, TMPDIR: dir, RUN_BRIDGE_DATA_DIR: data() });
const runFile = (number: number) => JSON.parse(readFileSync(join(data(), 'runs', traceOf(number), 'run.json'), 'utf8'));
const traces = () => traceIdsIn(data()).sort();

/** What an engine does that writes to a file of the user, whatever its arguments say of that. */
const script = (file: string, number: number, flags = '') =>
  `DBT_OTEL_FILE_NAME='${file}' '${process.execPath}' '${engine}' '${sample}' --trace ${traceOf(number)} ${flags}`;

/** The run of that number has its records, and one command, which succeeded. */
function expectRun(number: number): void {
  const log = readFileSync(join(data(), 'runs', traceOf(number), 'telemetry.jsonl'), 'utf8');
  expect(log === linesOf(number) ? 'the same' : 'different').toBe('the same');
  expect(runFile(number)).toMatchObject({ state: 'finished', steps: [{ verdict: 'success' }] });
}

interface Way {
  readonly args?: readonly string[];
  readonly more?: Readonly<Record<string, string>>;
  readonly cwd?: string;
  readonly file: string;
}

const WAYS: readonly (readonly [string, Way])[] = [
  ['a flag', { args: ['--otel-file-name', 'own.jsonl'], file: 'project/logs/own.jsonl' }],
  [
    'a flag, from within the project',
    { args: ['--otel-file-name=own.jsonl'], cwd: 'models', file: 'project/logs/own.jsonl' },
  ],
  ['a variable', { more: { DBT_OTEL_FILE_NAME: 'own.jsonl' }, file: 'project/logs/own.jsonl' }],
  ['a log path', { args: ['--log-path', 'mine', '--otel-file-name', '../own.jsonl'], file: 'project/own.jsonl' }],
  [
    'a variable for the log path',
    { more: { DBT_LOG_PATH: 'mine', DBT_OTEL_FILE_NAME: 'own.jsonl' }, file: 'project/mine/own.jsonl' },
  ],
  [
    'another project',
    { args: ['--project-dir', '../other', '--otel-file-name', 'own.jsonl'], file: 'other/logs/own.jsonl' },
  ],
];

describe("a command whose JSONL is the user's own has only what it wrote itself", () => {
  const exec = ({ args = [], more = {}, cwd = '', file }: Way, body: string, options: readonly string[] = []) => {
    mkdirSync(dirname(join(dir, file)), { recursive: true });
    return runBridge(['exec', ...options, '--', 'sh', '-c', body, 'dbt', ...args], {
      cwd: join(dir, 'project', cwd),
      env: { ...env(), ...more },
      timeoutMs: 60_000,
    });
  };
  const [[, flag] = ['', { file: '' }]] = WAYS;

  test.each(WAYS)(
    'named by %s, in a fresh data folder',
    async (_, way) => {
      const file = join(dir, way.file);
      mkdirSync(dirname(file), { recursive: true });
      writeFileSync(file, readFileSync(failed));
      for (const number of [1, 2]) {
        expect(await exec(way, script(file, number))).toEqual({ exitCode: 0, stdout: '', stderr: '' });
      }
      expect(traces()).toEqual([traceOf(1), traceOf(2)]);
      for (const number of [1, 2]) expectRun(number);
    },
    120_000,
  );

  test('twelve times in a row', async () => {
    const numbers = Array.from({ length: 12 }, (_, index) => index + 1);
    const file = join(dir, flag.file);
    for (const number of numbers) {
      expect(await exec(flag, script(file, number))).toEqual({ exitCode: 0, stdout: '', stderr: '' });
    }
    expect(traces()).toEqual(numbers.map(traceOf).sort());
    for (const number of numbers) expectRun(number);
  }, 300_000);

  test.each<readonly [string, (file: string) => void, (file: string) => string]>([
    ['ends in half a line', (file) => writeFileSync(file, lines.slice(0, -40)), () => 'true'],
    [
      'is a link',
      (file) => {
        writeFileSync(join(dir, 'real'), lines);
        symlinkSync(join(dir, 'real'), file);
      },
      () => 'true',
    ],
    ['is emptied by the command', (file) => writeFileSync(file, lines), (file) => `: > '${file}'`],
    ['is rotated by the command', (file) => writeFileSync(file, lines), (file) => `mv '${file}' '${file}.1'`],
    ['is removed by the command', (file) => writeFileSync(file, lines), (file) => `rm '${file}'`],
    ['is empty', (file) => writeFileSync(file, ''), () => 'true'],
  ])(
    'where the file %s',
    async (_, prepare, first) => {
      const file = join(dir, flag.file);
      mkdirSync(dirname(file), { recursive: true });
      prepare(file);
      expect(await exec(flag, `${first(file)}; ${script(file, 1)}`)).toEqual({ exitCode: 0, stdout: '', stderr: '' });
      expect(traces()).toEqual([traceOf(1)]);
      expectRun(1);
    },
    60_000,
  );

  test('where the engine sends no OTLP', async () => {
    const file = join(dir, flag.file);
    for (const number of [1, 2, 3]) {
      const way = { ...flag, more: number === 1 ? {} : { DBT_EXPORT_TO_OTLP: 'false' } };
      expect(await exec(way, script(file, number, '--no-otlp'))).toMatchObject({ exitCode: 0, stderr: '' });
    }
    expect(traces()).toEqual([1, 2, 3].map(traceOf));
    for (const number of [1, 2, 3]) expectRun(number);
  }, 60_000);

  test('where others write to the file meanwhile, and go on when it has ended', async () => {
    const file = join(dir, flag.file);
    mkdirSync(dirname(file), { recursive: true });
    const go = join(dir, 'go');
    const wait = `until [ -e '${go}' ]; do sleep 0.05; done`;
    // Another command, which has the file open before and after.
    const other = spawn('sh', ['-c', `exec 3>>'${file}'; echo open; read line`], { stdio: ['pipe', 'pipe', 'ignore'] });
    try {
      await new Promise((resolve) => other.stdout.once('data', resolve));
      const one = exec(flag, `echo ready > '${dir}/one'; ${wait}; ${script(file, 1)}`);
      const two = exec(flag, `echo ready > '${dir}/two'; ${wait}; ${script(file, 2)}`, [
        '--data-dir',
        join(dir, 'data-2'),
      ]);
      await until('both to be at work', () => existsSync(join(dir, 'one')) && existsSync(join(dir, 'two')));
      appendFileSync(file, linesOf(3));
      writeFileSync(go, '');
      const unsaid = { exitCode: 0, stdout: '', stderr: '' };
      expect(await Promise.all([one, two])).toEqual([unsaid, unsaid]);
    } finally {
      other.kill();
    }
    expect(traces()).toEqual([traceOf(1)]);
    expectRun(1);
    expect(readdirSync(join(data(), 'spool'))).toEqual([]);
    expect(traceIdsIn(join(dir, 'data-2'))).toEqual([traceOf(2)]);
  }, 60_000);

  test('where it reports to a bridge elsewhere', async () => {
    const file = join(dir, flag.file);
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, readFileSync(failed));
    const bridge = await BridgeProcess.start({ dataFolder: join(dir, 'far') });
    try {
      const options = ['--to', bridge.otlpUrl];
      for (const number of [1, 2]) {
        expect(await exec(flag, script(file, number), options)).toEqual({ exitCode: 0, stdout: '', stderr: '' });
      }
      expect(traceIdsIn(join(dir, 'far')).sort()).toEqual([traceOf(1), traceOf(2)]);
    } finally {
      await bridge.stop();
    }
  }, 60_000);

  test.skipIf(process.platform !== 'linux')(
    'where exec was killed, and the next start takes it in',
    async () => {
      const file = join(dir, flag.file);
      mkdirSync(dirname(file), { recursive: true });
      writeFileSync(file, readFileSync(failed));
      const body = `${script(file, 1)}; echo ready; read line`;
      const child: ChildProcess = spawn(
        process.execPath,
        [main, 'exec', '--', 'sh', '-c', body, 'dbt', '--otel-file-name', 'own.jsonl'],
        { cwd: join(dir, 'project'), env: env(), stdio: ['pipe', 'pipe', 'ignore'] },
      );
      await new Promise((resolve) => child.stdout?.once('data', resolve));
      const entry = () => {
        const [step = ''] = existsSync(join(data(), 'spool')) ? readdirSync(join(data(), 'spool')) : [];
        const path = join(data(), 'spool', step, 'command.json');
        return existsSync(path) ? readFileSync(path, 'utf8') : '';
      };
      await until('its trace to be known', () => entry().includes(traceOf(1)));
      child.kill('SIGKILL');
      await new Promise((resolve) => child.once('exit', resolve));
      appendFileSync(file, linesOf(2));
      expect((await runBridge(['report'], { cwd: dir, env: env(), timeoutMs: 60_000 })).exitCode).toBe(0);
      expect(traces()).toEqual([traceOf(1)]);
      expect(runFile(1)).toMatchObject({ steps: [{ step: { index: 1, ending: { kind: 'unknown' } } }] });
    },
    60_000,
  );

  test.skipIf(process.platform !== 'linux')(
    'where exec was killed before its engine wrote anything, and another command writes then',
    async () => {
      const file = join(dir, flag.file);
      mkdirSync(dirname(file), { recursive: true });
      writeFileSync(file, readFileSync(failed));
      const child = spawn(
        process.execPath,
        [main, 'exec', '--', 'sh', '-c', 'echo ready; read line', 'dbt', '--otel-file-name', 'own.jsonl'],
        { cwd: join(dir, 'project'), env: env(), stdio: ['pipe', 'pipe', 'ignore'] },
      );
      await new Promise((resolve) => child.stdout?.once('data', resolve));
      const [step = ''] = readdirSync(join(data(), 'spool'));
      const isThere = (name: string) => existsSync(join(data(), 'spool', step, name));
      await until('its entry and its lock', () => isThere('command.json') && isThere('lock.db'));
      child.kill('SIGKILL');
      await new Promise((resolve) => child.once('exit', resolve));
      appendFileSync(file, linesOf(2));
      const bridge = await BridgeProcess.start({ dataFolder: data() });
      try {
        const ended = await until('the killed run to end', async () => {
          const headers = { authorization: `Token ${readFileSync(join(data(), 'admin-token'), 'utf8').trim()}` };
          const answer = await fetch(`${bridge.webUrl}/api/v2/accounts/10001/runs/`, { headers });
          const text = await answer.text();
          return /"finished_at":"/.test(text) && text;
        });
        expect(ended).toContain('"status":20,');
        expect(ended.match(/"finished_at"/g)).toHaveLength(1);
      } finally {
        await bridge.stop();
      }
      expect(existsSync(join(data(), 'runs')) ? traces() : []).toEqual([]);
    },
    60_000,
  );
});
