import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, dirname, join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import { runBridge } from '../e2e/run-bridge.js';
import { Engine } from '../tool/engine.js';
import { pythonWith } from '../tool/python-venv.js';
import { makeSmall, programFolder, recipe } from '../tool/recipes.js';

// The recipes that need no other program than the engine, as they stand on their page.
let folder: string;
let bin: string;
let engine: Engine;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'run-bridge-recipes-'));
  bin = programFolder(folder);
  engine = Engine.up('core');
  makeSmall(engine);
});
afterAll(() => {
  engine?.remove();
  rmSync(folder, { recursive: true, force: true });
});

/** Runs a script in the project as a CI system does. */
function script(text: string, env: Readonly<Record<string, string>>) {
  const PATH = `${bin}:${dirname(engine.dbt)}:${process.env.PATH ?? ''}`;
  return engine.runCommand(['bash', '--noprofile', '--norc', '-eo', 'pipefail', '-c', text], { PATH, ...env });
}

/** Checks a file by a published schema. @returns the exit code of the checker */
function checked(schema: string, text: string): number | null {
  const file = join(folder, 'checked.yml');
  writeFileSync(file, text);
  const program = join(dirname(pythonWith('schemas-0.39')), 'check-jsonschema');
  return spawnSync(program, ['--builtin-schema', `vendor.${schema}`, file]).status;
}

async function newestRun(
  dataFolder: string,
): Promise<{ readonly status: string; readonly job: { readonly name: string } }> {
  const { stdout } = await runBridge(['runs', '--format', 'json', '--data-dir', dataFolder], { cwd: folder });
  return JSON.parse(stdout).runs[0];
}

test('cron runs its line with next to no environment', async () => {
  const data = join(folder, 'cron');
  const log = join(folder, 'shop.log');
  const [setting = '', line = ''] = recipe('PATH=')
    .replace('/opt/shop', engine.project)
    .replace('/var/log/shop.log', log)
    .split('\n');
  const [, path] = /^PATH=(\S+)$/.exec(setting) ?? [];
  const [, command = ''] = /^\d+ \d+ \* \* \* ([^%]+)$/.exec(line) ?? [];
  const env = {
    PATH: `${bin}:${dirname(engine.dbt)}:${path}`,
    SHELL: '/bin/sh',
    LOGNAME: 'root',
    RUN_BRIDGE_DATA_DIR: data,
  };
  expect(await engine.runCommand(['sh', '-c', command], env)).toMatchObject({ exitCode: 0, output: '' });
  expect(await newestRun(data)).toMatchObject({ status: 'success', job: { name: 'nightly' } });
  const get = ['artifact', 'get', '--job', 'nightly', 'output.txt', '--data-dir', data];
  expect((await runBridge(get, { cwd: folder })).stdout).toBe(readFileSync(log, 'utf8'));
});

test('systemd takes the units, and what they call takes their options', async ({ skip }) => {
  if (spawnSync('systemd-analyze', ['--version']).error !== undefined)
    return skip('systemd-analyze is not on this machine');
  const files = ['run-bridge.service', 'shop.service', 'shop.timer'].map((name) => {
    const file = join(folder, name);
    writeFileSync(
      file,
      recipe(`# /etc/systemd/system/${name}`).replaceAll('/usr/local/bin', bin).replaceAll('/opt/shop', engine.project),
    );
    return file;
  });
  const verify = () => {
    const { status, stdout, stderr } = spawnSync('systemd-analyze', ['verify', ...files], { encoding: 'utf8' });
    return { status, said: stdout + stderr };
  };
  expect(verify()).toEqual({ status: 0, said: '' });
  const [, service = ''] = files;
  const [, command = ''] = /^ExecStart=(.*)$/m.exec(readFileSync(service, 'utf8')) ?? [];
  const { exitCode, output } = await script(command, { RUN_BRIDGE_DATA_DIR: join(folder, 'systemd') });
  expect([exitCode, output]).toEqual([0, expect.stringContaining('\nrun-bridge: build: success after ')]);
  writeFileSync(service, readFileSync(service, 'utf8').replace('Type=oneshot', 'Type=once'));
  expect(verify().said).toContain(basename(service));
});

describe("GitHub's action", () => {
  interface Step {
    readonly name: string;
    readonly run?: string;
    readonly env?: Readonly<Record<string, string>>;
  }
  const action = parse(readFileSync('deploy/github/action.yml', 'utf8'));
  const temp = () => join(folder, 'github');
  const report = (name: string) => readFileSync(join(temp(), 'run-bridge/report', name), 'utf8');
  let number = 0;

  /** Runs the steps of the action that are scripts. */
  async function runAction(given: Readonly<Record<string, string>>) {
    number += 1;
    const files = ['GITHUB_OUTPUT', 'GITHUB_STEP_SUMMARY'].map(
      (name) => [name, join(temp(), `${name}-${number}`)] as const,
    );
    mkdirSync(temp(), { recursive: true });
    for (const [, file] of files) writeFileSync(file, '');
    const input = (name: string) =>
      given[name] ?? String(action.inputs[name]?.default ?? '').replace(/^\$\{\{.*\}\}$/, 'ci');
    const filled = (text: string) =>
      text
        .replaceAll(/\$\{\{ runner\.temp \}\}/g, temp())
        .replaceAll(/\$\{\{ strategy\.job-index \}\}/g, '2')
        .replaceAll(/\$\{\{ inputs\.against \|\| inputs\.job \}\}/g, input('against') || input('job'))
        .replaceAll(/\$\{\{ inputs\.([\w-]+) \}\}/g, (_, name: string) => input(name));
    const github = { GITHUB_RUN_ID: '7', GITHUB_RUN_ATTEMPT: '1', GITHUB_JOB: 'build', GITHUB_ACTION: `dbt${number}` };
    let output = '';
    for (const step of action.runs.steps as readonly Step[]) {
      if (step.run === undefined) continue;
      const own = Object.entries(step.env ?? {}).map(([name, value]) => [name, filled(value)]);
      expect(own.join()).not.toContain('${{');
      const ended = await script(step.run, { ...github, ...Object.fromEntries(files), ...Object.fromEntries(own) });
      output += ended.output;
      if (ended.exitCode !== 0) return { exitCode: ended.exitCode, output, files: Object.fromEntries(files) };
    }
    return { exitCode: 0, output, files: Object.fromEntries(files) };
  }

  test('is one that GitHub takes', () => {
    const text = readFileSync('deploy/github/action.yml', 'utf8');
    expect(checked('github-actions', text)).toBe(0);
    expect(checked('github-actions', text.replace('using: composite', 'using: composit'))).toBe(1);
  });

  test('keeps runs, and holds a pull request against the last good one of another job', async () => {
    const nightly = await runAction({ job: 'nightly' });
    expect(nightly.exitCode, nightly.output).toBe(0);
    expect(nightly.output).toContain('/data has no runs: nothing has been stored there');
    expect(readFileSync(String(nightly.files.GITHUB_OUTPUT), 'utf8')).toBe(
      [
        'key=run-bridge-nightly-2-7-1-build',
        'earlier=run-bridge-nightly-2-',
        `folder=${join(temp(), 'run-bridge/report')}\n`,
      ].join('\n'),
    );
    expect(readFileSync(String(nightly.files.GITHUB_STEP_SUMMARY), 'utf8')).toMatch(
      /^### ✅ `dbt build` succeeded in /,
    );

    const [wanted] = parse(recipe('# .github/workflows/dbt.yml')).jobs.build.steps.filter(
      ({ id }: { id?: string }) => id === 'dbt',
    );
    const model = join(engine.project, 'models/staging/stg_orders.sql');
    const good = readFileSync(model, 'utf8');
    writeFileSync(model, `select nothing_like_it from {{ ref('raw_orders') }}`);
    const pull = await runAction(wanted.with);
    expect(readFileSync(String(pull.files.GITHUB_OUTPUT), 'utf8')).toMatch(
      /^key=run-bridge-pull_requests-2-7-1-build\nearlier=run-bridge-nightly-2-\n/,
    );
    writeFileSync(model, good);
    expect(pull.exitCode, pull.output).toBe(1);
    expect(pull.output).toMatch(/^::error file=models\/staging\/stg_orders\.sql.*title=model stg_orders::/m);
    const summary = readFileSync(String(pull.files.GITHUB_STEP_SUMMARY), 'utf8');
    expect(summary).toBe(report('comment.md'));
    expect(summary).toMatch(/\nAgainst run 1001 of job `nightly`, .*: .* · 2 ended otherwise ·( 1 slower ·)? 1 gone\n/);
    expect(summary).toContain('- **`model stg_orders`**: success → error\n');
    // The seed is as it was, so it is not made again.
    expect(summary).toContain('\n#### 1 gone node\n\n- **`seed raw_orders`**\n');
    expect(report('junit.xml')).toContain('<testcase');
    expect(report('report.html')).toContain('stg_orders');
  });

  test('says with which code a command ended that never ran the engine', async () => {
    const { exitCode, files } = await runAction({ command: 'exit 7' });
    expect(exitCode).toBe(7);
    expect(existsSync(String(files.GITHUB_STEP_SUMMARY))).toBe(true);
  });
});

describe('GitLab', () => {
  test('takes the configuration, and its scripts write what its artifacts name', async () => {
    const text = recipe('# .gitlab-ci.yml');
    expect(checked('gitlab-ci', text)).toBe(0);
    expect(checked('gitlab-ci', text.replace('after_script:', 'afterwards:'))).toBe(1);

    const { variables, cache, script: lines, after_script: after, artifacts } = parse(text).dbt;
    const { project } = engine;
    for (const id of ['1', '2']) {
      const given: Readonly<Record<string, string>> = { CI_PROJECT_DIR: project, CI_JOB_NAME: 'dbt', CI_JOB_ID: id };
      const env = Object.fromEntries(
        Object.entries<string>(variables).map(([name, value]) => [
          name,
          value.replaceAll(/\$(\w+)/g, (_, key) => given[key] ?? ''),
        ]),
      );
      const { exitCode, output } = await script([...lines, ...after].join('\n'), env);
      expect(exitCode, output).toBe(0);
    }
    expect(readFileSync(join(project, artifacts.paths[0]), 'utf8')).toMatch(/\nAgainst run 1001 of job `dbt`, /);
    expect(readFileSync(join(project, artifacts.reports.junit), 'utf8')).toContain('<testcase');
    expect(existsSync(join(project, cache.paths[0], 'state.db'))).toBe(true);
  });
});
