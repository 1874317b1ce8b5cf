import { spawn } from 'node:child_process';
import {
  chmodSync,
  copyFileSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { PlatformServer } from '../fake/platform-server.js';
import { sampleFolder } from '../fake/sample-run.js';
import { BridgeProcess } from '../tool/bridge-process.js';
import type { Ended } from './run-bridge.js';

// Every command of README and docs/ is run from the Markdown, page by page, a block at a time: by the built program where it names
// run-bridge, beside a bridge that has the data folder; test/tool/documented-program.mjs stands for other programs.
const root = resolve(import.meta.dirname, '../..');
const PROGRAMS = ['run-bridge', 'dbt', 'make', 'npm', 'docker', 'duckdb', 'createdb', 'open'];
/** Figures of benchmarks take minutes, and a part of the tests cannot run itself. */
const PAGES = [
  'README.md',
  ...['docs', 'docs/reference'].flatMap((folder) =>
    readdirSync(join(root, folder))
      .filter((name) => name.endsWith('.md') && name !== 'performance.md')
      .map((name) => join(folder, name)),
  ),
];
/** What the text names and the sandbox has under another name, or not at all. */
const NOT_THERE = [/wsu_2Zk\w+/, /wev_2Zk\w+/, /finish 4711/, /revoke 1002/, /delete 1042/, /export 1042/, /open 1042/];
/** As a scheduler may have set it, for what the text does with it; not for the commands. */
const TRACEPARENT = `TRACEPARENT=00-${'a'.repeat(32)}-${'b'.repeat(16)}-01`;

let dir: string;
let bridge: BridgeProcess;
let platform: PlatformServer;
let env: Readonly<Record<string, string>>;

beforeAll(async () => {
  dir = mkdtempSync(join(tmpdir(), 'run-bridge-documented-'));
  const dataFolder = join(dir, '.local/share/run-bridge');
  layOut();
  platform = await PlatformServer.listen();
  platform.accountId = 7;
  platform.runs = [{ id: 1234, jobId: 5, createdAt: new Date().toISOString(), steps: [{ telemetry: 'build-clean' }] }];
  env = {
    ...{ PATH: `${join(dir, 'bin')}:${dirname(process.execPath)}:${process.env.PATH ?? ''}`, HOME: dir, TMPDIR: dir },
    ...{ REPOSITORY: root, SAMPLE: resolve(sampleFolder('build-mixed')), RUN_BRIDGE_DATA_DIR: dataFolder },
    RUN_BRIDGE_PLATFORM_TOKEN: platform.token,
  };
  // What pages speak of as there: a run that is known by its id, one with artifacts, one with a name of its own. Nobody has the data folder yet.
  await shell(`run-bridge import ${resolve(sampleFolder('build-mixed-fusion'), 'otel.jsonl')}`);
  await shell('run-bridge exec -- dbt build');
  const engine = `node ${join(root, 'test/tool/stand-in-engine.mjs')} ${resolve(sampleFolder('build-clean'))} --no-otlp`;
  const nightly = `mkdir -p target; cp package.json target/manifest.json; ${engine} --trace ${'c'.repeat(32)}`;
  await shell(`run-bridge exec --job nightly -- sh -c '${nightly}'`);
  await shell('run-bridge exec --run-id "night $(date -I)" -- true');
  bridge = await BridgeProcess.start({ dataFolder, env: { HOME: dir } });
  const token = readFileSync(join(dataFolder, 'admin-token'), 'utf8').trim();
  env = { ...env, TOKEN: token, RUN_BRIDGE_TOKEN: token };
});
afterAll(async () => {
  platform.close();
  await bridge.remove();
  rmSync(dir, { recursive: true, force: true });
});

/** The folder in which somebody works, with the files that commands name. */
function layOut(): void {
  const sample = join(root, sampleFolder('build-clean'));
  for (const folder of ['bin', 'work/logs', 'work/old', 'work/archive', 'work/projects/shop/logs', 'backups']) {
    mkdirSync(join(dir, folder), { recursive: true });
  }
  const program = join(root, 'test/tool/documented-program.mjs');
  for (const name of PROGRAMS) {
    writeFileSync(
      join(dir, 'bin', name),
      `#!/bin/sh\nexec "${process.execPath}" "${program}" "$(basename "$0")" "$@"\n`,
    );
    chmodSync(join(dir, 'bin', name), 0o755);
  }
  for (const name of [
    'logs/otel.jsonl',
    'old/otel.jsonl',
    'otel.jsonl',
    'extra.jsonl',
    'telemetry.jsonl',
    'projects/shop/logs/otel.jsonl',
  ]) {
    copyFileSync(join(sample, 'otel.jsonl'), join(dir, 'work', name));
  }
  for (const name of ['a.jsonl.zst', 'archive/a.jsonl.zst']) {
    copyFileSync(join(root, 'test/fixture/packed/build-mixed.jsonl.zst'), join(dir, 'work', name));
  }
  symlinkSync(join(root, 'package.json'), join(dir, 'work/package.json'));
  writeFileSync(join(dir, 'work/dbt_project.yml'), 'name: shop\n');
  writeFileSync(join(dir, 'work/report.sql'), 'FROM runs');
  writeFileSync(join(dir, 'work/prod.yaml'), 'redaction: statements\n');
  copyFileSync(join(root, 'deploy/several.yaml'), join(dir, 'work/several.yaml'));
  writeFileSync(join(dir, '.curlrc'), 'fail\nsilent\nshow-error\nmax-time = 20\n');
}

/** Blocks of shell commands of a page: the line they stand at, and their text. */
function blocksOf(markdown: string): readonly (readonly [number, string])[] {
  return Array.from(markdown.matchAll(/^```sh\n([\s\S]*?)^```/gm), (match) => [
    markdown.slice(0, match.index).split('\n').length,
    match[1] ?? '',
  ]);
}

/** The commands as they are run here: addresses, placeholders and folders that are elsewhere are those of the sandbox. */
function inSandbox(commands: string): string {
  const isOwnPort = /--http \S+|--web \S+/g;
  return commands
    .replaceAll(isOwnPort, (flag) => flag.replaceAll(':', '\u0001'))
    .replaceAll(/http:\/\/(127\.0\.0\.1|bridge):4318/g, bridge.otlpUrl)
    .replaceAll(/http:\/\/(127\.0\.0\.1|bridge):4380/g, bridge.webUrl)
    .replaceAll('\u0001', ':')
    .replaceAll('https://cloud.example.com', platform.url)
    .replaceAll(/(?<=PLATFORM_TOKEN=)…/g, platform.token)
    .replaceAll(/(?<=WEBHOOK_KEY=)…/g, 'A'.repeat(43))
    .replaceAll('/backups/', `${join(dir, 'backups')}/`)
    .replaceAll('2026-11-20', '$(date -I)')
    .replaceAll(/report (1042|"night 4711")/g, 'report 1001')
    .replaceAll('diff 1041 1042', 'diff 1001 1001')
    .replaceAll('runs/1001/artifacts', 'runs/1002/artifacts')
    .replaceAll(/report 01a1fb8e(?!-)/g, 'report 01a1fb8e-d')
    .replaceAll('services/…', 'services/T0/B0/key')
    .replaceAll('/var/lib/run-bridge', join(dir, 'var'));
}

function shell(commands: string): Promise<Ended> {
  const child = spawn('bash', ['-c', `set -eo pipefail\n${TRACEPARENT}\n${commands}`], {
    cwd: join(dir, 'work'),
    env,
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let stdout = '';
  let stderr = '';
  child.stdout.on('data', (chunk: Buffer) => {
    stdout += chunk.toString();
  });
  child.stderr.on('data', (chunk: Buffer) => {
    stderr += chunk.toString();
  });
  return new Promise((done, fail) => {
    child.on('error', fail);
    child.on('close', (exitCode) => done({ exitCode, stdout, stderr }));
  });
}

const commands = PAGES.map((page) => [page, blocksOf(readFileSync(join(root, page), 'utf8'))] as const);

describe.each(commands.filter(([, blocks]) => blocks.length > 0))('%s', (_, blocks) => {
  test.each(blocks)('line %i: its commands do what they say', async (_line, text) => {
    const lines = text.split('\n').filter((line) => NOT_THERE.some((pattern) => pattern.test(line)));
    const rest = text.split('\n').filter((line) => !lines.includes(line));
    const { exitCode, stderr } = await shell(inSandbox(rest.join('\n')));
    expect(exitCode, stderr).toBe(0);
    // What these name is another's: they are understood, and say so.
    for (const line of lines) expect((await shell(inSandbox(line))).exitCode).toBe(1);
  });
});
