import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { parseAllDocuments } from 'yaml';
import { runBridge } from '../e2e/run-bridge.js';
import { BridgeProcess } from '../tool/bridge-process.js';
import { Engine } from '../tool/engine.js';
import { buildPeer, runPeer } from '../tool/peer-process.js';
import { pythonWith } from '../tool/python-venv.js';
import { makeSmall, programFolder, recipe, writeScript } from '../tool/recipes.js';

// The recipes as they stand on their page, with the real Airflow, Cosmos, Dagster, Prefect and Collector, and the real engine.
interface Run {
  readonly run_key: string | null;
  readonly status: string;
  readonly is_complete: boolean;
  readonly steps: readonly { readonly command: string; readonly status: string }[];
}

let folder: string;
let engine: Engine;
let bridge: BridgeProcess;
let env: Readonly<Record<string, string>>;
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'run-bridge-recipes-'));
  engine = Engine.up('core');
  makeSmall(engine);
  bridge = await BridgeProcess.start();
  writeScript(join(engine.project, 'dbt-exec'), recipe('#!/bin/sh\n# dbt-exec'));
  env = {
    PATH: `${programFolder(folder)}:${dirname(engine.dbt)}:${process.env.PATH ?? ''}`,
    ...{ RUN_BRIDGE_TO: bridge.otlpUrl, RUN_BRIDGE_DATA_DIR: join(folder, 'own') },
    ...{ SHOP_DB: join(engine.project, 'shop.duckdb'), PYTHONDONTWRITEBYTECODE: '1' },
  };
}, 600_000);
afterAll(async () => {
  await bridge?.remove();
  engine?.remove();
  rmSync(folder, { recursive: true, force: true });
});

/** Writes a recipe to a file, for the project that is here. */
function write(path: string, start: string): string {
  const file = join(folder, path);
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, recipe(start).replaceAll('/opt/shop', engine.project));
  return file;
}

async function run(command: readonly string[], more: Readonly<Record<string, string>> = {}): Promise<void> {
  const { exitCode, output } = await engine.runCommand(command, { ...env, ...more });
  expect(exitCode, output).toBe(0);
}

/** The runs of a job, the last to start first. */
async function runsOf(job: string): Promise<readonly Run[]> {
  const list = ['runs', '--job', job, '--format', 'json', '--data-dir', bridge.dataFolder];
  const { stdout } = await runBridge(list, { cwd: folder });
  return (JSON.parse(stdout) as { readonly runs: readonly Run[] }).runs;
}

const commandsOf = ({ steps }: Run) => steps.map(({ command }) => command.replace(/^dbt (\S+).*$/s, '$1'));

describe('Airflow', () => {
  // Of three DAGs in one process, which takes seconds to start: the last is the first one with a task that fails.
  const RUN_DAGS = `import runpy, sys
from airflow.utils import db
db.initdb()
for file in sys.argv[1:]:
    print(runpy.run_path(file)["finish"].dag.test().state)`;

  beforeAll(async () => {
    const nightly = write('airflow/dags/nightly.py', '# dags/nightly.py');
    const failing = join(folder, 'airflow/dags/failing.py');
    const text = readFileSync(nightly, 'utf8');
    writeFileSync(
      failing,
      text.replace('DAG("nightly"', 'DAG("failing"').replace('dbt build', 'dbt build --no-such-flag'),
    );
    const files = [nightly, write('airflow/dags/shop.py', '# dags/shop.py'), failing];
    const airflow = { AIRFLOW_HOME: join(folder, 'airflow'), AIRFLOW__CORE__LOAD_EXAMPLES: 'False' };
    const command = [pythonWith('airflow-cosmos-1.15'), '-c', RUN_DAGS, ...files];
    const { exitCode, output } = await engine.runCommand(command, { ...env, ...airflow });
    expect([exitCode, output.match(/^(success|failed)$/gm)], output).toEqual([0, ['success', 'success', 'failed']]);
  });

  test('of a DAG of BashOperators each run is one of as many steps, also where a task fails', async () => {
    const [good] = await runsOf('nightly');
    expect(good).toMatchObject({ status: 'success', run_key: expect.stringMatching(/^nightly manual__/) });
    expect(good && commandsOf(good)).toEqual(['seed', 'build']);
    expect(await runsOf('failing')).toMatchObject([{ status: 'error', is_complete: true }]);
  });

  test('of a DAG that Cosmos makes of the project each run is one of as many steps', async () => {
    const [made] = await runsOf('shop');
    expect(made).toMatchObject({ status: 'success', is_complete: true });
    expect(made && commandsOf(made)).toEqual(['seed', 'run', 'test']);
  });
});

test("Dagster's assets are made under run-bridge", async () => {
  const python = pythonWith('dagster-dbt-0.29.27');
  await run(['dbt', 'parse']);
  const file = write('dagster/shop.py', '# shop.py');
  const code = `import dagster, runpy
given = runpy.run_path(${JSON.stringify(file)})
result = dagster.materialize([given["shop"]], resources=given["definitions"].resources)
assert len(result.get_asset_materialization_events()) == 2, result.all_events`;
  await run([python, '-c', code], { DAGSTER_HOME: folder, RUN_BRIDGE_JOB: 'assets' });
  const made = await runsOf('assets');
  expect(made.map(({ status }) => status)).toEqual(['success']);
  expect(made.map(commandsOf)).toEqual([['build']]);
});

test("a flow of Prefect is a run that has the flow run's id", async () => {
  const python = pythonWith('prefect-3.8.8');
  await run([python, write('prefect/flow.py', '# flow.py')], { PREFECT_HOME: join(folder, 'prefect') });
  const [made] = await runsOf('nightly');
  expect(made).toMatchObject({
    status: 'success',
    run_key: expect.stringMatching(/^[\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12}$/),
  });
  expect(made && commandsOf(made)).toEqual(['seed', 'build']);
});

describe('Kubernetes', () => {
  interface Manifest {
    readonly kind: string;
    readonly metadata: { readonly name: string };
  }
  let manifests: readonly Manifest[];
  beforeAll(() => {
    buildPeer('kustomize');
    const text = runPeer('kustomize', ['build', 'deploy/kubernetes']);
    writeFileSync(join(folder, 'kubernetes.yaml'), text);
    manifests = parseAllDocuments(text).map((document): Manifest => document.toJS());
  });

  /** The value at a path of a manifest. */
  function at(kind: string, ...path: readonly (string | number)[]): unknown {
    let value: unknown = manifests.find((one) => one.kind === kind);
    for (const key of path) value = (value as Readonly<Record<string, unknown>> | undefined)?.[key];
    return value;
  }

  test('takes the manifests that kustomize makes', async () => {
    expect(manifests.map(({ kind }) => kind).sort()).toEqual([
      'CronJob',
      'Deployment',
      'PersistentVolumeClaim',
      'Service',
    ]);
    const program = join(dirname(pythonWith('schemas-0.39')), 'kubernetes-validate');
    const file = join(folder, 'kubernetes.yaml');
    await run([program, '--strict', file]);
    writeFileSync(file, readFileSync(file, 'utf8').replace('livenessProbe', 'livelinessProbe'));
    const { exitCode, output } = await engine.runCommand([program, '--strict', file], env);
    expect([exitCode, output]).toEqual([1, expect.stringContaining('livelinessProbe')]);
  });

  test('finds the bridge ready by its probes, with settings that it takes', async () => {
    const container = ['spec', 'template', 'spec', 'containers', 0];
    for (const probe of ['startupProbe', 'livenessProbe', 'readinessProbe']) {
      const path = at('Deployment', ...container, probe, 'httpGet', 'path');
      expect((await fetch(`${bridge.webUrl}${path}`)).status).toBe(200);
      expect(at('Deployment', ...container, probe, 'httpGet', 'port')).toBe('web');
    }
    const settings = at('Deployment', ...container, 'env') as readonly {
      readonly name: string;
      readonly value: string;
    }[];
    const given = Object.fromEntries(settings.map(({ name, value }) => [name, value]));
    expect(await runBridge(['config'], { cwd: folder, env: given })).toMatchObject({ exitCode: 0, stderr: '' });
    expect(readFileSync('Dockerfile', 'utf8')).toContain('RUN_BRIDGE_WEB=0.0.0.0:4380');
  });

  test('runs a CronJob whose run the Service of the bridge takes', async () => {
    const container = ['spec', 'jobTemplate', 'spec', 'template', 'spec', 'containers', 0];
    const name = at('Service', 'metadata', 'name');
    expect(at('CronJob', ...container, 'env', 0)).toEqual({ name: 'RUN_BRIDGE_TO', value: `http://${name}:4318` });
    expect(at('Service', 'spec', 'ports')).toContainEqual({ name: 'otlp-http', port: 4318, targetPort: 'otlp-http' });
    const before = (await runsOf('nightly')).length;
    await run(at('CronJob', ...container, 'command') as readonly string[]);
    const runs = await runsOf('nightly');
    expect([runs.length, runs[0]?.status]).toEqual([before + 1, 'success']);
  });
});

describe('the Collector', () => {
  test('takes the configuration of one in front', () => {
    buildPeer('otelcol');
    const file = write('collector/config.yaml', '# in front');
    expect(existsSync(file)).toBe(true);
    runPeer('otelcol', ['validate', '--config', file]);
  });

  test('is a destination of the configuration for one behind', async () => {
    const file = write('behind/run-bridge.yaml', '# behind');
    const { exitCode, stdout } = await runBridge(['config', '--config', file], { cwd: folder });
    expect(exitCode).toBe(0);
    expect(stdout).toContain('http://collector:4318');
  });
});
