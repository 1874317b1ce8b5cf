import { execFileSync, spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { SAMPLES } from '../fake/sample-run.js';
import { BridgeProcess } from '../tool/bridge-process.js';
import { sendSample } from '../tool/send-sample.js';

const ENGINE = new URL('../tool/stand-in-engine.mjs', import.meta.url).pathname;
/** The whole of it, but for DuckDB, which is optional. */
const MAX_INSTALLED_BYTES = 51 * 1024 * 1024;

let dir: string;
let env: NodeJS.ProcessEnv;
/** Files of the package, by their paths within it. */
let packed: readonly string[];

// As a machine that has Node and nothing else: no development dependencies, no compiler, and no script of a package is run.
beforeAll(() => {
  dir = mkdtempSync(join(tmpdir(), 'run-bridge-package-'));
  env = {
    ...process.env,
    PATH: `${dirname(process.execPath)}:/usr/bin:/bin`,
    ...{ CC: 'false', CXX: 'false', npm_config_ignore_scripts: 'true', npm_config_prefer_offline: 'true' },
    ...{
      npm_config_audit: 'false',
      npm_config_fund: 'false',
      npm_config_update_notifier: 'false',
      npm_config_fetch_retries: '1',
    },
  };
  const [{ filename, files }] = JSON.parse(npm('pack', '--json', '--pack-destination', dir));
  packed = files.map(({ path }: { readonly path: string }) => path);
  npm('install', '--prefix', join(dir, 'home'), join(dir, filename));
});
afterAll(() => rmSync(dir, { recursive: true, force: true }));

const npm = (...args: string[]) =>
  execFileSync('npm', args, { env, encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] });
const modules = () => join(dir, 'home', 'node_modules');
const program = () => join(modules(), 'run-bridge', 'dist', 'main.js');
function run(...args: string[]): { readonly status: number | null; readonly stdout: string; readonly stderr: string } {
  return spawnSync(join(modules(), '.bin', 'run-bridge'), args, {
    cwd: dir,
    env: { ...env, RUN_BRIDGE_DATA_DIR: join(dir, 'data') },
    encoding: 'utf8',
  });
}

/** Names of the installed packages, scopes included. */
function installed(): readonly string[] {
  return readdirSync(modules())
    .filter((name) => !name.startsWith('.'))
    .flatMap((name) =>
      name.startsWith('@') ? readdirSync(join(modules(), name)).map((inner) => `${name}/${inner}`) : name,
    );
}

function byteCount(path: string): number {
  const found = statSync(path);
  if (!found.isDirectory()) return found.size;
  return readdirSync(path).reduce((sum, name) => sum + byteCount(join(path, name)), 0);
}

describe('the packed program, installed into an empty folder', () => {
  test('holds what it needs to run and no sources', () => {
    const tops = new Set(packed.map((path) => path.split('/')[0]));
    expect([...tops].sort()).toEqual(
      ['CHANGELOG.md', 'LICENSE', 'README.md', 'demo', 'dist', 'package.json', 'pages', 'proto'].sort(),
    );
  });

  test('brings along native code alone: what is bundled is not installed a second time', () => {
    const notices = readFileSync(join(dirname(program()), 'THIRD-PARTY-NOTICES.txt'), 'utf8');
    const bundled = new Set(Array.from(notices.matchAll(/^=+\n(\S+) /gm), ([, name]) => name));
    const names = installed();
    expect(names).toContain('libsql');
    expect(names.filter((name) => bundled.has(name))).toEqual([]);
    expect(
      names.filter((name) => !/^(run-bridge|libsql|detect-libc|@libsql\/.*|@neon-rs\/load|@duckdb\/.*)$/.test(name)),
    ).toEqual([]);
  });

  test('takes less than 51 MiB on disk, DuckDB aside', () => {
    const bytes = installed()
      .filter((name) => !name.startsWith('@duckdb/'))
      .reduce((sum, name) => sum + byteCount(join(modules(), name)), 0);
    expect(bytes).toBeLessThan(MAX_INSTALLED_BYTES);
  });

  test('serves', async () => {
    const bridge = await BridgeProcess.start({ program: program() });
    try {
      await sendSample(bridge.otlpUrl, 'build-clean');
      const [traceId = ''] = bridge.traceIds();
      expect((await bridge.finished(traceId)).steps).toMatchObject([{ verdict: 'success' }]);
      expect(await (await fetch(bridge.webUrl, { headers: { accept: 'text/html' } })).text()).toContain('run-bridge');
      expect(await bridge.stop()).toBe(0);
    } finally {
      await bridge.remove();
    }
  });

  test('runs a command, reports its run and answers SQL', () => {
    const command = [process.execPath, ENGINE, resolve(SAMPLES, 'build-mixed')];
    expect(run('exec', '--', ...command)).toMatchObject({ status: 0, stdout: '' });
    expect(run('report').stdout).toContain('\nslowest nodes');
    expect(existsSync(join(modules(), '@duckdb'))).toBe(true);
    expect(run('query', '--csv', 'select count(*) as runs from runs').stdout).toBe('runs\n1\n');
  });

  test('is run by npx from the tarball', () => {
    const tarball = join(dir, readdirSync(dir).find((name) => name.endsWith('.tgz')) ?? '');
    expect(npm('exec', '--yes', '--package', tarball, '--', 'run-bridge', '--version')).toMatch(/^\d+\.\d+\.\d+$/m);
  });
});
