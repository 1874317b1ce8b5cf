import { execFileSync, spawn } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { z } from 'zod';
import { runBridge } from '../e2e/run-bridge.js';
import { BridgeProcess } from '../tool/bridge-process.js';
import { Engine } from '../tool/engine.js';
import { basePython, PYTHONS, pythonWith } from '../tool/python-venv.js';
import { TlsFront } from '../tool/tls-front.js';
import { traceIdsIn } from '../tool/trace-ids.js';
import { until } from '../tool/until.js';

const ACCOUNT = 10_001;
const main = new URL('../../dist/main.js', import.meta.url).pathname;
const clients = new URL('../fixture/clients/', import.meta.url).pathname;

/** A run as the API lists it, as far as tests look at it. */
interface Run {
  readonly id: number;
  readonly job_id: number;
  readonly project_id: number;
  readonly environment_id: number;
  readonly status: number;
  readonly is_complete: boolean;
  readonly trigger: { readonly steps_override: readonly string[] | null } | null;
  readonly run_steps: readonly { readonly index: number; readonly status: number; readonly logs: string }[];
}

let folder: string;
let engine: Engine;
let bridge: BridgeProcess;
let front: TlsFront;
/** Where dbtc's webhooks are delivered, and what came there. */
let hook: Server;
const hooked: string[] = [];
let token: string;
let run: Run;
/** By name. */
let jobIds: ReadonlyMap<string, number>;

// Runs of the real engine: one of another job; then one of four commands under one name, the last of which leaves a
// run_results.json.
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'run-bridge-clients-'));
  engine = Engine.up('core');
  const project = JSON.stringify(engine.project);
  const config = join(folder, 'run-bridge.yaml');
  const { PATH = '' } = process.env;
  writeFileSync(
    config,
    `projects: { shop: { id: 7001 } }
environments: { production: { id: 7002, project: shop } }
jobs:
  nightly:
    project: shop
    environment: production
    working-dir: ${project}
    command: [[${JSON.stringify(engine.dbt)}, run, --select, stg_orders], [${JSON.stringify(engine.dbt)}, test, --select, stg_orders]]
    env: &env { DBT_PROFILES_DIR: ${project}, DO_NOT_TRACK: "1", PATH: ${JSON.stringify(PATH)} }
  failing:
    project: shop
    environment: production
    working-dir: ${project}
    command: [[${JSON.stringify(engine.dbt)}, seed], [${JSON.stringify(engine.dbt)}, build, --exclude, "tag:slow"]]
    env: *env
  DAGSTER_ADHOC_JOB__7001__7002:
    project: shop
    environment: production
    working-dir: ${project}
    command: [[${JSON.stringify(engine.dbt)}, build, --target, duck]]
    steps-override: true
    env: *env
  waiting: { project: shop, environment: production, command: [[sleep, "60"]] }
`,
  );
  const dataFolder = join(folder, 'data');
  mkdirSync(dataFolder);
  bridge = await BridgeProcess.start({ dataFolder, args: ['--config', config, '--webhook-allow', 'loopback'] });
  front = await TlsFront.open(bridge.webUrl);
  hook = createServer(async (request, response) => {
    let body = '';
    for await (const chunk of request) body += String(chunk);
    hooked.push(body);
    response.end();
  });
  await new Promise<void>((resolve) => hook.listen(0, '127.0.0.1', resolve));
  token = readFileSync(join(dataFolder, 'admin-token'), 'utf8').trim();
  const exec = async (options: readonly string[], ...command: readonly string[]) => {
    const line = [process.execPath, main, 'exec', ...options, '--to', bridge.otlpUrl, '--', 'dbt', ...command];
    await engine.runCommand(line, { RUN_BRIDGE_DATA_DIR: join(folder, 'own') });
  };
  await exec(['--job', 'other'], 'seed');
  const night = ['--run-id', 'night', '--job', 'nightly'];
  await exec(night, 'seed');
  await exec(night, 'run', '--exclude', 'tag:slow', 'tag:bad');
  await exec(night, 'test', '--exclude', 'tag:bad');
  await exec([...night, '--last'], 'build', '--exclude', 'tag:slow', 'tag:bad');
  run = await until('the end of the run', async () => {
    const [latest] = await runs('order_by=-id&limit=1&include_related=run_steps');
    return latest?.is_complete && latest.run_steps.length === 4 && latest;
  });
  const jobs = (await ask('/jobs/')) as readonly { readonly id: number; readonly name: string }[];
  jobIds = new Map(jobs.map(({ name, id }) => [name, id]));
}, 600_000);
afterAll(async () => {
  front?.close();
  hook?.closeAllConnections();
  hook?.close();
  await bridge?.remove();
  engine?.remove();
  rmSync(folder, { recursive: true, force: true });
});

async function ask(path: string): Promise<unknown> {
  const url = `${bridge.webUrl}/api/v2/accounts/${ACCOUNT}${path}`;
  const answer = await fetch(url, { headers: { authorization: `Token ${token}` } });
  if (!answer.ok) throw new Error(`${url} is ${answer.status}`);
  return ((await answer.json()) as { data: unknown }).data;
}
const runs = (query: string) => ask(`/runs/?${query}`) as Promise<readonly Run[]>;

/** Runs a client's script against the bridge over TLS, with nothing of the client patched. @returns what it printed */
function runClient(script: string, python: string): Promise<{ exitCode: number | null; output: string }> {
  return runProgram(python, [join(clients, script)]);
}

function runProgram(program: string, args: readonly string[]): Promise<{ exitCode: number | null; output: string }> {
  const child = spawn(program, [...args], {
    env: {
      ...{ PATH: process.env.PATH ?? '', HOME: folder, AIRFLOW_HOME: join(folder, 'airflow') },
      ...{ TLS_HOST: front.host, REQUESTS_CA_BUNDLE: TlsFront.certificate, SSL_CERT_FILE: TlsFront.certificate },
      ...{ PYTHONDONTWRITEBYTECODE: '1', TOKEN: token, ACCOUNT_ID: String(ACCOUNT), RUN_ID: String(run.id) },
      ...{ JOB_ID: String(run.job_id), PROJECT_ID: String(run.project_id) },
      ENVIRONMENT_ID: String(run.environment_id),
      ...{ FAILED_JOB_ID: String(jobIds.get('failing')), SLOW_JOB_ID: String(jobIds.get('waiting')) },
      HOOK_URL: `http://127.0.0.1:${(hook.address() as AddressInfo).port}/dbtc`,
    },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let output = '';
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk: Buffer) => (output += chunk.toString()));
  return new Promise((resolve) => child.once('close', (exitCode) => resolve({ exitCode, output })));
}

/** Waits until every run is over. @returns those of the job since a run, the oldest first */
const endedRuns = (sinceId: number) =>
  until(
    'the end of the runs that the client started',
    async () => {
      const found = await runs(`id__gt=${sinceId}&order_by=id&include_related=run_steps`);
      return found.length > 0 && found.every((each) => each.is_complete) && found;
    },
    60_000,
  );

describe('published clients of the hosted platform, against runs of the real engine', () => {
  it('have an account that is not 1, and no run 404', async () => {
    expect(ACCOUNT).not.toBe(1);
    expect((await runs('')).map(({ id }) => id)).not.toContain(404);
    expect(run.run_steps.map(({ index, status }) => [index, status])).toEqual([1, 2, 3, 4].map((index) => [index, 10]));
  });

  it('dbtc reads runs, artifacts and jobs, starts a job that really runs, and has webhooks', async () => {
    const python = pythonWith('dbtc-0.11.7');
    const { exitCode, output } = await runClient('compat_dbtc.py', python);
    expect(output.match(/^FAIL .*/gm)).toBeNull();
    expect([exitCode, output]).toEqual([0, expect.stringMatching(/^ok {3}trigger_job$[\s\S]*^PASS$/m)]);
    // All that the script asks for, the webhooks at its end among it.
    expect(output).toMatch(/^ok {3}delete_webhook$[\s\S]*^ok {3}job_ids sent as a bare int is tolerated/m);
    const tested = z.object({ webhookName: z.string(), eventType: z.string() });
    expect(hooked.map((body) => tested.parse(JSON.parse(body)))).toContainEqual({
      webhookName: 'compat dbtc 2',
      eventType: 'job.run.started',
    });
    const started = await endedRuns(run.id);
    expect(started).toHaveLength(1);
    expect(started[0]).toMatchObject({ status: 10, run_steps: [{ status: 10 }, { status: 10 }] });
    // What the commands wrote is the engine's own.
    const details = (await ask(`/runs/${started[0]?.id}/?include_related=run_steps`)) as Run;
    expect(details.run_steps[0]?.logs).toContain('stg_orders');
  }, 600_000);

  it("Airflow's hook reads runs in pages, artifacts and jobs, and starts, restarts and cancels", async () => {
    const last = (await runs('order_by=-id&limit=1'))[0]?.id ?? 0;
    const python = pythonWith('airflow-cosmos-1.15');
    const { exitCode, output } = await runClient('compat_airflow.py', python);
    expect(output.match(/^(FAIL|note:) .*/gm)).toBeNull();
    expect([exitCode, output]).toEqual([0, expect.stringMatching(/^ok {3}async get_job_status[\s\S]*^PASS$/m)]);
    const started = await endedRuns(last);
    expect(started).toHaveLength(2);
    for (const each of started) expect(each).toMatchObject({ status: 10, run_steps: [{ status: 10 }, { status: 10 }] });
  }, 600_000);

  it("Dagster's client finds the project, the environment and its jobs, and knows runs by the id in their artifacts", async () => {
    const { exitCode, output } = await runClient('compat_dagster.py', pythonWith('dagster-dbt-0.29.27'));
    expect(output.match(/^FAIL .*/gm)).toBeNull();
    expect([exitCode, output]).toEqual([0, expect.stringMatching(/^ok {3}materialize what fails$[\s\S]*^PASS$/m)]);
    const job = jobIds.get('DAGSTER_ADHOC_JOB__7001__7002');
    const started = await runs(`job_definition_id=${job}&order_by=id&include_related=trigger`);
    const asked = started.map(({ status, trigger }) => [status, ...(trigger?.steps_override ?? [])] as const);
    expect(asked[0]).toEqual([10, 'dbt parse']);
    expect(asked.filter(([, step]) => step !== 'dbt parse')).toEqual([
      [10, expect.stringMatching(/^dbt build --vars '\{"a": "it is"\}' --select '(shop\.[a-z_.]+ ?){2}'$/)],
      [10, expect.stringMatching(/ '--indirect-selection empty'$/)],
      [20, expect.stringMatching(/ --select shop\.marts\.broken$/)],
    ]);
  }, 600_000);

  it("Prefect's blocks start a job and wait for it, read its artifacts, and say why a request is refused", async () => {
    const { exitCode, output } = await runClient('compat_prefect.py', pythonWith('prefect-dbt-0.7.25'));
    expect(output.match(/^FAIL .*/gm)).toBeNull();
    expect([exitCode, output]).toEqual([0, expect.stringMatching(/^ok {3}trigger of no job$[\s\S]*^PASS$/m)]);
  }, 600_000);

  it("dbt-mcp's server answers an assistant of projects, jobs, runs, artifacts and errors, and triggers, retries and cancels", async (context) => {
    const name = 'dbt-mcp-2.8.0';
    if (basePython(name) === undefined)
      return context.skip(`${name} needs Python ${PYTHONS[name].versions.join(' or ')}, and there is none here`);
    const { exitCode, output } = await runClient('compat_dbt_mcp.py', pythonWith(name));
    expect(output.match(/^FAIL .*/gm)).toBeNull();
    expect([exitCode, output]).toEqual([
      0,
      expect.stringMatching(/^ok {3}get_job_run_error of what was cancelled[\s\S]*^PASS$/m),
    ]);
  }, 600_000);

  it("the requests of Terraform's provider, sent and read by Go, plan without a difference after each change", async () => {
    const program = join(folder, 'compat-terraform');
    execFileSync('go', ['build', '-o', program, join(clients, 'compat_terraform.go')], { stdio: 'inherit' });
    const { exitCode, output } = await runProgram(program, []);
    expect(output.match(/^FAIL .*/gm)).toBeNull();
    expect([exitCode, output]).toEqual([0, expect.stringMatching(/^ok {3}it is known to be gone[\s\S]*^PASS$/m)]);
  }, 600_000);

  it("run-bridge's own pull brings the same records from the bridge's API", async () => {
    const { webUrl, dataFolder } = bridge;
    const named = ['--base-url', webUrl, '--account', String(ACCOUNT), '--run', String(run.id)];
    const env = { RUN_BRIDGE_PLATFORM_TOKEN: token };
    const pulled = await runBridge(['pull', ...named, '--data-dir', 'pulled'], { cwd: folder, env, timeoutMs: 60_000 });
    expect(pulled).toMatchObject({ exitCode: 0, stderr: expect.stringMatching(/: 1 run, \d+ records$/m) });
    const lines = (data: string, traceId: string) =>
      readFileSync(join(data, 'runs', traceId, 'telemetry.jsonl'), 'utf8')
        .trimEnd()
        .split('\n')
        .toSorted();
    const traceIds = traceIdsIn(join(folder, 'pulled'));
    expect(traceIds).toHaveLength(4);
    for (const traceId of traceIds) expect(lines(join(folder, 'pulled'), traceId)).toEqual(lines(dataFolder, traceId));
  });
});
