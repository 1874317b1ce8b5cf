import { createHmac } from 'node:crypto';
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { runBridge } from '../e2e/run-bridge.js';
import { OtlpReceiver } from '../fake/otlp-receiver.js';
import { PlatformServer } from '../fake/platform-server.js';
import { SAMPLES, sampleLines, sampleTraceId } from '../fake/sample-run.js';
import { BridgeProcess } from '../tool/bridge-process.js';
import { SpawnedCommand } from '../tool/spawned-command.js';
import { until } from '../tool/until.js';

let platform: PlatformServer;
let dir: string;
const started: { stop(signal: NodeJS.Signals): Promise<unknown> }[] = [];
beforeEach(async () => {
  platform = await PlatformServer.listen();
  dir = mkdtempSync(join(tmpdir(), 'run-bridge-pull-'));
});
afterEach(async () => {
  for (const one of started.splice(0)) await one.stop('SIGKILL');
  platform.close();
  rmSync(dir, { recursive: true, force: true });
});

const env = (given: Readonly<Record<string, string>> = {}): Readonly<Record<string, string>> => ({
  RUN_BRIDGE_PLATFORM_TOKEN: platform.token,
  ...given,
});
const named = () => ['--base-url', platform.url, '--account', String(platform.accountId)];
const pull = (...args: string[]) =>
  runBridge(['pull', ...named(), '--data-dir', 'data', '--log-level', 'warn', ...args], { cwd: dir, env: env() });
const logOf = (traceId: string, data = join(dir, 'data')) =>
  readFileSync(join(data, 'runs', traceId, 'telemetry.jsonl'), 'utf8');
const hasRun = (traceId: string, data = join(dir, 'data')) => existsSync(join(data, 'runs', traceId, 'run.json'));
const runFile = (traceId: string) => JSON.parse(readFileSync(join(dir, 'data/runs', traceId, 'run.json'), 'utf8'));
const downloads = () => platform.paths.filter((path) => path.includes('telemetry-'));

describe('pull of a run', () => {
  test('brings the records that the import of its Parquet brings, with a verdict, Parquet and its place', async () => {
    const steps = [{ name: 'Clone git repository' }, { telemetry: 'build-mixed', status: 20 }, { telemetry: 'parse' }];
    platform.runs = [{ id: 9, status: 20, steps }];
    expect(await pull('--run', '9')).toMatchObject({
      exitCode: 0,
      stderr: `run 9 (job 1, Error): 757 records of 2 steps\npulled into ${dir}/data/runs: 1 run, 757 records\n`,
    });
    const traceId = sampleTraceId('build-mixed');
    const parquet = new URL(`../../${SAMPLES}/build-mixed/otel.parquet`, import.meta.url).pathname;
    await runBridge(['import', parquet, '--data-dir', 'imported'], { cwd: dir });
    expect(logOf(traceId)).toBe(logOf(traceId, join(dir, 'imported')));
    expect(logOf(traceId).trimEnd().split('\n').toSorted()).toEqual(sampleLines('build-mixed').toSorted());
    expect(logOf(sampleTraceId('parse'))).toBe(`${sampleLines('parse').join('\n')}\n`);
    expect(runFile(traceId)).toMatchObject({
      resource: { attributes: { 'cicd.pipeline.run.id': '9', 'deployment.environment.name': 'Production' } },
      state: 'finished',
      steps: [{ verdict: 'error' }],
    });
    expect(readdirSync(join(dir, 'data/runs', traceId))).toContain('telemetry.parquet');
    expect(readdirSync(join(dir, 'data/pull'))).toEqual([]);
  });

  test('again gives no record twice', async () => {
    platform.runs = [{ id: 9, steps: [{ telemetry: 'parse' }] }];
    for (let times = 0; times < 2; times++) expect(await pull('--run', '9')).toMatchObject({ exitCode: 0 });
    expect(logOf(sampleTraceId('parse')).trimEnd().split('\n')).toHaveLength(63);
  });

  test('exports it to your own backend, which finds it by what the platform says of it', async () => {
    const backend = await OtlpReceiver.listen();
    platform.runs = [{ id: 9, steps: [{ telemetry: 'parse' }] }];
    const environment = env({ OTEL_EXPORTER_OTLP_ENDPOINT: backend.url });
    const args = ['pull', ...named(), '--data-dir', 'data', '--run', '9'];
    expect(await runBridge(args, { cwd: dir, env: environment })).toMatchObject({ exitCode: 0 });
    backend.close();
    expect(backend.spanNames.length).toBeGreaterThan(5);
    for (const { body } of backend.requests) expect(body.includes('cicd.pipeline.run.url.full')).toBe(true);
    expect(backend.requests.some(({ body }) => body.includes(platform.token))).toBe(false);
  });

  test('that is not complete ends with 1, and says so', async () => {
    platform.runs = [{ id: 9, status: 3 }];
    expect(await pull('--run', '9')).toMatchObject({
      exitCode: 1,
      stderr: expect.stringContaining('run 9 (job 1, Running): not complete yet\n'),
    });
  });

  test('whose step has broken telemetry ends with 3; the other steps are there', async () => {
    const broken = readFileSync(join(SAMPLES, 'build-mixed/otel.parquet'));
    broken.fill(0x5a, 4_000, 9_000);
    platform.runs = [
      { id: 9, steps: [{ telemetry: broken }, { telemetry: Buffer.from('no') }, { telemetry: 'parse' }] },
    ];
    const { exitCode, stderr } = await pull('--run', '9');
    expect([exitCode, hasRun(sampleTraceId('parse'))]).toEqual([3, true]);
    expect(stderr).toMatch(/^ {2}step 1: its Parquet file cannot be read as Parquet: /m);
    expect(stderr).toMatch(/^ {2}step 2: its Parquet file cannot be read as Parquet: /m);
    expect(stderr).not.toContain('/pull/');
  });

  test('goes on after faults of the platform: a pause that it asks for, a failure, a download that breaks off', async () => {
    platform.runs = [{ id: 9, steps: [{ telemetry: 'parse' }] }];
    platform.fault = ({ path }) => {
      const count = platform.requests.filter((request) => request.path === path).length;
      if (count > 1) return undefined;
      return path.includes('telemetry-') ? { cutOff: true } : { status: 429, headers: { 'retry-after': '1' } };
    };
    expect(await pull('--run', '9')).toMatchObject({ exitCode: 0 });
    expect(logOf(sampleTraceId('parse')).trimEnd().split('\n')).toHaveLength(63);
  });

  test('is handed over to the bridge that holds the data folder, with the same records and place', async () => {
    const bridge = await BridgeProcess.start({ dataFolder: join(dir, 'data') });
    started.push(bridge);
    platform.runs = [{ id: 9, status: 20, steps: [{ telemetry: 'fail-fast', status: 20 }] }];
    expect(await pull('--run', '9')).toMatchObject({
      exitCode: 0,
      stderr: expect.stringContaining(`pulled to ${bridge.otlpUrl}: 1 run, 289 records\n`),
    });
    const traceId = sampleTraceId('fail-fast');
    await bridge.finished(traceId);
    expect(logOf(traceId).trimEnd().split('\n').toSorted()).toEqual(sampleLines('fail-fast').toSorted());
    expect(runFile(traceId)).toMatchObject({
      resource: { attributes: { 'cicd.pipeline.run.id': '9' } },
      steps: [{ verdict: 'error' }],
    });
    expect(await pull('--since', '2026-01-01')).toMatchObject({ stderr: expect.stringContaining('1 there already') });
  });
});

describe('pull of a list', () => {
  test('brings in what is new, job by job, and says what is not', async () => {
    platform.runs = [
      { id: 1, jobId: 5, steps: [{ telemetry: 'parse' }] },
      { id: 2, jobId: 5, status: 3 },
      { id: 3, jobId: 5, artifactsSaved: false, steps: [{}] },
      { id: 4, jobId: 6, steps: [{ telemetry: 'build-clean' }] },
      { id: 5, jobId: 5, createdAt: '2025-06-01 00:00:00+00:00', steps: [{ telemetry: 'joined' }] },
    ];
    const first = await pull('--since', '2026-01-01', '--job', '5');
    expect(first).toMatchObject({
      exitCode: 0,
      stderr: expect.stringMatching(/: 1 run, 63 records; 1 without telemetry; 1 not complete yet\n$/),
    });
    platform.requests.length = 0;
    expect(await pull('--since', '2026-01-01T00:00Z')).toMatchObject({
      stderr: expect.stringMatching(/: 1 run, 254 records; 1 not complete yet; 2 there already\n$/),
    });
    expect(downloads()).toEqual(['/runs/4/artifacts/metadata/telemetry-1-otel.parquet/']);
    expect(hasRun(sampleTraceId('joined'))).toBe(false);
  });
});

describe('pull says what is wrong and what to do', () => {
  const args = (...given: string[]) => runBridge(['pull', '--data-dir', 'data', ...given], { cwd: dir });

  test('with the command line, all at once, before anything is begun', async () => {
    expect(await args()).toMatchObject({
      exitCode: 2,
      stderr: [
        'run-bridge: --base-url is missing: name the platform, such as https://cloud.example.com',
        "run-bridge: --account is missing: name the account's number (it is in the platform's addresses)",
        'run-bridge: RUN_BRIDGE_PLATFORM_TOKEN is not set: set it to a token of the platform that may read the account',
        'run-bridge: no runs given: pass --run ID, --since TIME (such as 24h), or --watch; --job ID goes with the last two',
        '',
      ].join('\n'),
    });
    expect(existsSync(join(dir, 'data'))).toBe(false);
  });

  test.each([
    [['--run', '1', '--job', '2', '--watch'], '--run is one run: leave out --job and --watch'],
    [
      ['--job', '2'],
      'no runs given: pass --run ID, --since TIME (such as 24h), or --watch; --job ID goes with the last two',
    ],
    [['--since', '2999-01-01'], '--since: "2999-01-01" is not a time in the past such as 24h or 2026-01-31T08:00Z'],
    [['--run', 'x1'], '--run: "x1" is not a number of the platform'],
    [['--since', '1h', '--interval', '10s'], '--interval goes with --watch'],
    [['--watch', '--interval', '1s'], '--interval: "1s" is not a time from 5s to 1d'],
  ])('with %j', async (given, problem) => {
    expect(await pull(...given)).toEqual({ exitCode: 2, stdout: '', stderr: `run-bridge: ${problem}\n` });
  });

  test('with the account, the run and the token', async () => {
    const where = ['--base-url', platform.url, '--data-dir', 'data', '--run', '1'];
    const options = { cwd: dir, env: env() };
    expect(await runBridge(['pull', ...where, '--account', '5'], options)).toMatchObject({
      exitCode: 1,
      stderr: expect.stringMatching(
        /^run-bridge: there is no account 5, or the token may not see it\. Check --account/,
      ),
    });
    expect(await pull('--run', '1')).toMatchObject({
      exitCode: 1,
      stderr: expect.stringMatching(/^run-bridge: there is no run 1 in account \d+\. Check the number/),
    });
    platform.token = 'another';
    const refused = await runBridge(['pull', ...where, '--account', '5'], options);
    expect(refused).toMatchObject({ exitCode: 1, stderr: expect.stringContaining('Set RUN_BRIDGE_PLATFORM_TOKEN') });
    expect(refused.stderr).not.toContain('secret-token');
  });
});

describe('pull --watch', () => {
  function watch(token = platform.token): SpawnedCommand {
    const args = ['pull', ...named(), '--data-dir', 'data', '--watch', '--interval', '5s', '--since', '2026-01-01'];
    const command = new SpawnedCommand(args, { cwd: dir, env: env({ RUN_BRIDGE_PLATFORM_TOKEN: token }) });
    started.push(command);
    return command;
  }

  test('brings runs in as they complete, stops cleanly, and goes on after a restart without doing anything twice', async () => {
    platform.runs = [
      { id: 1, steps: [{ telemetry: 'parse' }] },
      { id: 2, status: 3 },
    ];
    const first = watch();
    await until('the first run', () => hasRun(sampleTraceId('parse')));
    platform.runs[1] = { id: 2, steps: [{ telemetry: 'build-clean' }] };
    await until('the run that completed', () => hasRun(sampleTraceId('build-clean')));
    expect(await first.stop('SIGTERM')).toBe(0);
    expect(first.stderr).toMatch(/^watches {3}account 70471823 of http\S+ every 5s$/m);
    platform.requests.length = 0;
    platform.runs.push({ id: 3, createdAt: '2026-01-05 00:00:00+00:00', steps: [{ telemetry: 'fail-fast' }] });
    const second = watch();
    await until('the run that came meanwhile', () => hasRun(sampleTraceId('fail-fast')));
    expect(await second.stop('SIGINT')).toBe(0);
    expect(downloads()).toEqual(['/runs/3/artifacts/metadata/telemetry-1-otel.parquet/']);
  });

  test('says at once when the token is wrong', async () => {
    const command = watch('another');
    expect(await command.ended()).toBe(1);
    expect(command.stderr).toContain('Set RUN_BRIDGE_PLATFORM_TOKEN');
  });
});

describe('a webhook of the platform', () => {
  const SECRET = 'd3b0738a';
  const hooks = () => env({ RUN_BRIDGE_PLATFORM_HOOK_SECRET: SECRET, RUN_BRIDGE_PLATFORM_URL: platform.url });

  async function serve(environment = hooks()): Promise<BridgeProcess> {
    const bridge = await BridgeProcess.start({ dataFolder: join(dir, 'data'), env: environment });
    started.push(bridge);
    return bridge;
  }

  function post({ webUrl }: BridgeProcess, runId: number, secret = SECRET): Promise<Response> {
    const event = { accountId: platform.accountId, eventType: 'job.run.completed', data: { runId: String(runId) } };
    const body = JSON.stringify(event);
    const authorization = createHmac('sha256', secret).update(body).digest('hex');
    return fetch(`${webUrl}/hooks/platform`, { method: 'POST', headers: { authorization }, body });
  }

  test('brings its run in; repeated, it changes nothing', async () => {
    platform.runs = [{ id: 9, steps: [{ telemetry: 'build-clean' }] }];
    const bridge = await serve();
    expect(bridge.stderr).toContain(`webhooks  of ${platform.url} at ${bridge.webUrl}/hooks/platform\n`);
    expect((await post(bridge, 9, 'wrong')).status).toBe(401);
    expect((await post(bridge, 9)).status).toBe(202);
    expect(await bridge.finished(sampleTraceId('build-clean'))).toMatchObject({ steps: [{ verdict: 'success' }] });
    expect((await post(bridge, 9)).status).toBe(202);
    expect((await post(bridge, 9)).status).toBe(202);
    const { checks } = (await (await fetch(`${bridge.webUrl}/readyz?verbose`)).json()) as { checks: unknown[] };
    expect(checks).toContainEqual(expect.objectContaining({ name: 'platform pull', ready: true }));
    expect(await bridge.stop()).toBe(0);
    expect(downloads()).toHaveLength(1);
    const lines = logOf(sampleTraceId('build-clean')).trimEnd().split('\n');
    expect(lines.toSorted()).toEqual(sampleLines('build-clean').toSorted());
  });

  test('that was answered before a crash is not lost', async () => {
    platform.runs = [{ id: 9, steps: [{ telemetry: 'parse' }] }];
    platform.fault = () => ({ silent: true });
    const bridge = await serve();
    expect((await post(bridge, 9)).status).toBe(202);
    await bridge.stop('SIGKILL');
    platform.fault = () => undefined;
    const again = await serve();
    await again.finished(sampleTraceId('parse'));
  });

  test('is answered while the platform is silent, and keeps nobody from stopping', async () => {
    platform.fault = () => ({ silent: true });
    const bridge = await serve();
    for (let id = 1; id <= 20; id++) expect((await post(bridge, id)).status).toBe(202);
    expect(await bridge.stop()).toBe(0);
  });

  test('is answered that it is off, and what is missing', async () => {
    const bridge = await serve({
      RUN_BRIDGE_PLATFORM_HOOK_SECRET: SECRET,
      RUN_BRIDGE_PLATFORM_TOKEN: '',
      RUN_BRIDGE_PLATFORM_URL: '',
    });
    const missing = 'set RUN_BRIDGE_PLATFORM_TOKEN and --platform-url';
    expect(bridge.stderr).toContain(`run-bridge: webhooks of the hosted platform are off: ${missing}\n`);
    const answer = await post(bridge, 1);
    expect([answer.status, await answer.text()]).toEqual([
      404,
      `Webhooks of the hosted platform are off: ${missing}.\n`,
    ]);
  });
});
