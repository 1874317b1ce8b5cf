import { appendFileSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { SAMPLES } from '../fake/sample-run.js';
import { sampleCommand } from '../tool/sample-command.js';
import { runBridge } from './run-bridge.js';

let dir: string;
beforeEach(async () => {
  dir = mkdtempSync(join(tmpdir(), 'run-bridge-report-'));
});
afterEach(() => rmSync(dir, { recursive: true, force: true }));

const run = (args: readonly string[]) => runBridge(args, { cwd: dir });
const sample = (name: string) => resolve(SAMPLES, name, 'otel.jsonl');
const report = (...args: string[]) => run(['report', ...args, '--data-dir', 'data']);

async function importSamples(...names: string[]): Promise<void> {
  expect(await run(['import', ...names.map(sample), '--data-dir', 'data'])).toMatchObject({ exitCode: 0 });
}

test('a run is reported by the first characters of its invocation id', async () => {
  await importSamples('build-mixed-fusion', 'build-clean');
  const { exitCode, stdout, stderr } = await report('01a1fb8e-d');
  expect({ exitCode, stderr }).toEqual({ exitCode: 0, stderr: '' });
  expect(stdout).toContain('run 01a1fb8e-d69e-7ef1-84c9-9d1f72b8766e\nbuild: failed after 1.8 s\n');
  expect(stdout).toContain('\nnodes: 1 error, 2 failed, 3 skipped, 1 warned, 13 success, 1 no-op\nhooks: 2 success\n');
  expect(stdout).toMatch(/\nwhere the 1\.8 s went:\n {2}running +[\d.]+ (?:ms|s) +\d+ % +█+\n/);
  expect(stdout).toMatch(/\n {2}queries ran for 12 % of it: 38 queries, 9 rows\n/);
  expect(stdout).toMatch(/over all threads: duration_ms 2\.0 s, idle_time_ms 0 ms, warehouse 304 ms\n/);
  expect(stdout).toMatch(/\n {2}parse +120 ms +6\.9 % +120 ms\n/);
  expect(stdout).toMatch(/\nslowest nodes .*:\n.*\n {2}model\.shop\.broken +946 ms +54 % .* 1\.1 s\n/);
  expect(stdout).toMatch(/\n {2}run model\.shop\.broken +4 ms +1\.0 s +59 %\n/);
  expect(stdout).toContain(
    '\nfailed with an error:\n  model.shop.broken (models/marts/broken.sql): Database Error in model broken',
  );
  expect(stdout).toContain('\n  test.shop.status_strict.0c25ec6282 (models/schema.yml:25): 1 failing row\n');
  expect(stdout).toContain('\n  because of model.shop.broken:\n      model.shop.after_broken\n');
});

test.each([
  [{ FORCE_COLOR: '1' }, true],
  [{ FORCE_COLOR: '1', NO_COLOR: '1' }, false],
  [{ FORCE_COLOR: '0' }, false],
  [{}, false],
])('has colours where there is no terminal if that is wanted: %j', async (env, hasColor) => {
  const { stdout } = await runBridge(['report', sample('build-clean')], { cwd: dir, env });
  expect(stdout.includes('\u001b[1;32mbuild: success')).toBe(hasColor);
});

test('as JSON, each command of the run has its nodes in their phases', async () => {
  await importSamples('overlapping');
  expect((await report()).stdout).toMatch(/^run \S+, command 1 of 2\n.*\n\nrun \S+, command 2 of 2\n/s);
  const { exitCode, stdout } = await report('--json');
  expect(exitCode).toBe(0);
  const { commands } = JSON.parse(stdout);
  expect(commands.map(({ verdict }: { verdict: string }) => verdict).sort()).toEqual(['error', 'success']);
  for (const { nodes, totals, critical_path } of commands) {
    expect(nodes).toHaveLength(totals.node_count);
    expect(nodes[0].phases[0]).toMatchObject({ phase: 'RENDER', outcome: 'success' });
    const { links, tail_ms } = critical_path;
    const sum = links.reduce(
      (ms: number, link: { wait_ms: number; time_ms: number }) => ms + link.wait_ms + link.time_ms,
      tail_ms,
    );
    expect(sum).toBeCloseTo(totals.length_ms, 3);
  }
});

test('the latest is reported without a name, beside earlier successes of its command', async () => {
  await importSamples('build-clean');
  await importSamples('joined');
  const { stdout } = await report();
  expect(stdout).toContain('run 0af76519-16cd-43dd-8448-eb211c80319c');
  expect(stdout).toMatch(/\nbeside 1 earlier success: median .*\n/);
});

test('a run is reported by its number, whether somebody named it or nobody did', async () => {
  await importSamples('build-mixed-fusion', 'build-clean', 'overlapping');
  const { stdout } = await run([
    'query',
    '--json',
    '--data-dir',
    'data',
    'SELECT run_id, trace_id, command_index FROM steps',
  ]);
  const rows: { run_id: number; trace_id: string; command_index: number }[] = JSON.parse(stdout);
  expect(rows).toHaveLength(4);
  for (const { run_id, trace_id, command_index } of rows) {
    const { commands } = JSON.parse((await report(String(run_id), '--json')).stdout);
    expect(commands).toHaveLength(1);
    expect(commands[0]).toMatchObject({ trace_id, index: Number(command_index) });
  }
  expect((await report('4711')).stderr).toMatch(/^run-bridge: no run "4711" is in /);
});

describe('against another run', () => {
  beforeEach(async () => {
    const samples = ['build-clean', 'build-mixed-fusion', 'build-clean', 'build-mixed-fusion', 'compile'];
    for (const [number, name] of samples.entries()) {
      const job = number < 2 ? 'nightly' : 'pull requests';
      const command = sampleCommand(name, number);
      expect(await run(['exec', '--data-dir', 'data', '--job', job, '--', ...command])).toMatchObject({ exitCode: 0 });
    }
  });

  test('that is the last good one of its job, or of one that is named, or a run or file by its name', async () => {
    const clean = /\nbefore: build: success after \d+ ms, run (\d+), job ([a-z ]+), [\s\S]*\nnew \(7\):\n/;
    const against = async (...args: string[]) =>
      clean.exec((await report('1004', '--against', ...args)).stdout)?.slice(1);
    expect(await against('last-good')).toEqual(['1003', 'pull requests']);
    expect(await against('last-good', '--job', 'nightly')).toEqual(['1001', 'nightly']);
    expect(await against('1001')).toEqual(['1001', 'nightly']);
    const { stdout } = await report('1004', '--against', sample('build-clean'), '--format', 'markdown');
    expect(stdout).toMatch(/\nAgainst an earlier run, 2026-\d\d-\d\d \d\d:\d\d UTC: .* longer · 7 new\n/);
    const ofFile = await report(sample('build-mixed'), '--against', 'last-good', '--job', 'nightly');
    expect(ofFile.stdout).toMatch(/\nbefore: build: success after \d+ ms, run 1001, job nightly, /);
  });

  test('in the summary of a step of GitHub, beside its annotations', async () => {
    const env = { GITHUB_STEP_SUMMARY: join(dir, 'summary.md') };
    const { stdout } = await runBridge(
      ['report', '1004', '--data-dir', 'data', '--against', 'last-good', '--format', 'github'],
      { cwd: dir, env },
    );
    expect(stdout).toContain('::error ');
    expect(readFileSync(env.GITHUB_STEP_SUMMARY, 'utf8')).toMatch(/\nAgainst run 1003 of job `pull requests`, .*\n/);
  });

  test('says so where there is none, and reports all the same', async () => {
    for (const [args, message] of [
      [['1001', '--against', 'last-good'], 'no run before it of its job ended with success'],
      // No earlier one has the command.
      [['1005', '--against', 'last-good', '--job', 'nightly'], 'no run of job "nightly" ended with success'],
    ] as const) {
      const { exitCode, stdout, stderr } = await report(...args);
      expect({ exitCode, stderr }).toEqual({ exitCode: 0, stderr: expect.stringContaining(`run-bridge: ${message}`) });
      expect(stdout).toMatch(/^run .*, step 1 of run /);
      expect(stdout).not.toContain('\nbefore: ');
    }
  });

  test.each([
    ['a run that there is not', ['1004', '--against', '4711'], 1, 'no run "4711" is in'],
    ['a format without room for it', ['1004', '--against', '1003', '--format', 'json'], 2, '--against goes with'],
    ['a job of a run that is named', ['1004', '--against', '1003', '--job', 'nightly'], 2, '--job says whose'],
    ['a job alone', ['1004', '--job', 'nightly'], 2, '--job says whose'],
    ['nobody knows whose', [sample('build-mixed'), '--against', 'last-good'], 2, 'name the job with --job'],
  ] as const)('is refused for %s', async (_name, args, exitCode, message) => {
    expect(await report(...args)).toEqual({ exitCode, stdout: '', stderr: expect.stringContaining(message) });
  });
});

test("an outcome of a newer engine is shown in the engine's own word, in the report, to programs and to queries", async () => {
  const text = readFileSync(sample('build-clean'), 'utf8').replaceAll(
    /^(?=.*"SpanEnd".*"unique_id":"model\.shop\.revenue")(.*)NODE_OUTCOME_SUCCESS/gm,
    '$1NODE_OUTCOME_DEFERRED',
  );
  writeFileSync(join(dir, 'otel.jsonl'), text);
  expect(await run(['import', 'otel.jsonl', '--data-dir', 'data'])).toMatchObject({ exitCode: 0 });
  const { stdout } = await report();
  expect(stdout).toContain('\nnodes: 12 success, 1 no-op, 1 deferred\n');
  expect(stdout).toContain('\nother outcomes, in the words of the engine:\n  model.shop.revenue: deferred\n');
  const [command] = JSON.parse((await report('--json')).stdout).commands;
  expect(command.totals.node_counts).toMatchObject({ success: 12, unfinished: 0, deferred: 1 });
  const query = async (sql: string) => JSON.parse((await run(['query', '--json', '--data-dir', 'data', sql])).stdout);
  expect(await query("SELECT outcome FROM nodes WHERE unique_id = 'model.shop.revenue'")).toEqual([
    { outcome: 'deferred' },
  ]);
  expect(await query('SELECT success_count, unfinished_count, other_count FROM steps')).toEqual([
    { success_count: 12, unfinished_count: 0, other_count: 1 },
  ]);
  expect(await query('SELECT node_count FROM runs')).toEqual([{ node_count: 14 }]);
});

test('what reads no rows passes nothing, in reports, to programs and to queries', async () => {
  const text = readFileSync(sample('build-clean'), 'utf8').replaceAll('dbt build ', 'dbt build --empty ');
  writeFileSync(join(dir, 'otel.jsonl'), text);
  expect(await run(['import', 'otel.jsonl', '--data-dir', 'data'])).toMatchObject({ exitCode: 0 });
  expect((await report()).stdout).toContain('\nnodes: 13 success, 1 no-op\n');
  expect((await report('--format', 'junit')).stdout).not.toContain('<testcase');
  const [{ nodes }] = JSON.parse((await report('--json')).stdout).commands;
  expect(nodes.filter(({ outcome }: { outcome: string }) => outcome === 'success')).toHaveLength(13);
  const sql = 'SELECT count(*) AS nodes, count(*) FILTER (is_executed) AS executed FROM nodes';
  const { stdout } = await run(['query', '--json', '--data-dir', 'data', sql]);
  expect(JSON.parse(stdout)).toEqual([{ nodes: 14, executed: 0 }]);
});

test('a run is compared with those of its own project, job and command alone', async () => {
  await importSamples('build-clean', 'joined');
  expect((await report('0af76519')).stdout).toMatch(/\nbeside 1 earlier success: median .*\n/);
  rmSync(join(dir, 'data'), { recursive: true });
  for (const [sample, project] of [
    ['build-clean', 'shop'],
    ['joined', 'retail'],
  ] as const) {
    writeFileSync(join(dir, 'run-bridge.yaml'), `projects:\n  ${project}:\n    match: [{command: "dbt *"}]\n`);
    await importSamples(sample);
  }
  const { stdout } = await report('0af76519');
  expect(stdout).toContain('\nbuild: success after ');
  expect(stdout).not.toContain('earlier success');
});

test('a run that is under way, or was cut off, is reported as far as it came', async () => {
  await importSamples('fail-fast');
  const { stdout: whole } = await report('--json');
  const [{ trace_id }] = JSON.parse(whole).commands;
  const folder = join(dir, 'data/runs', trace_id);
  rmSync(join(folder, 'run.json'));
  expect(JSON.parse((await report('--json')).stdout)).toEqual(JSON.parse(whole));
  writeFileSync(join(folder, 'telemetry.jsonl'), '');
  expect(await report(trace_id)).toMatchObject({
    exitCode: 1,
    stderr: expect.stringMatching(/^run-bridge: no record of /),
  });
});

test('what the disk damaged is left out and reported', async () => {
  await importSamples('build-clean');
  const { stdout } = await report('--json');
  const [{ trace_id, totals }] = JSON.parse(stdout).commands;
  appendFileSync(join(dir, 'data/runs', trace_id, 'telemetry.jsonl'), '{"record_type":\u0000\n');
  const damaged = await report('--json');
  expect(damaged.exitCode).toBe(3);
  expect(damaged.stderr).toMatch(/^run-bridge: skipped lines of the record log/);
  expect(JSON.parse(damaged.stdout).commands[0].totals).toEqual(totals);
});

test('control characters of messages do not reach the terminal', async () => {
  await importSamples('build-clean');
  const { stdout } = await report('--json');
  const [{ trace_id, index }] = JSON.parse(stdout).commands;
  expect(index).toBe(1);
  const line = JSON.stringify({
    record_type: 'LogRecord',
    trace_id,
    span_id: null,
    span_name: null,
    event_id: null,
    time_unix_nano: '1795221792690281654',
    severity_number: 17,
    severity_text: 'ERROR',
    body: '\u001b[31mred\u0007',
    event_type: 'v1.public.events.fusion.log.LogMessage',
    attributes: {},
  });
  appendFileSync(join(dir, 'data/runs', trace_id, 'telemetry.jsonl'), `${line}\n`);
  const { stdout: text } = await report(trace_id);
  expect(text).toContain('\ufffd[31mred\ufffd');
  expect(text).not.toContain('\u001b');
});

test('a run that is not there, and one that may be several, are reported in one line', async () => {
  expect(await report()).toMatchObject({
    exitCode: 1,
    stdout: '',
    stderr: expect.stringMatching(/^run-bridge: no run is in \S+; set the folder with --data-dir\n$/),
  });
  await importSamples('build-mixed-fusion', 'build-clean');
  expect((await report('nightly')).stderr).toMatch(
    /^run-bridge: no run "nightly" is in \S+; check the spelling; .*\n$/,
  );
  expect((await report('01a1fb8e')).stderr).toMatch(
    /^run-bridge: 01a1fb8e matches 2 runs; give more characters of its id: .*\n$/,
  );
});

/** Imports a sample as a run of its own, so many hours after it happened. */
async function importLater(name: string, hours: number, change = (line: string) => line): Promise<void> {
  const laterNano = BigInt(hours) * 3_600_000_000_000n;
  const text = readFileSync(sample(name), 'utf8')
    .replaceAll(/"trace_id":"[0-9a-f]{32}"/g, `"trace_id":"${String(hours).repeat(32)}"`)
    .replaceAll(/_unix_nano":"(\d+)"/g, (_, nano) => `_unix_nano":"${BigInt(nano) + laterNano}"`);
  const path = join(dir, `${name}-${hours}.jsonl`);
  writeFileSync(path, text.split('\n').map(change).join('\n'));
  expect(await run(['import', path, '--data-dir', 'data'])).toMatchObject({ exitCode: 0 });
}

test('says since when a run and its nodes fail, and ends with what to run again', async () => {
  await importLater('build-clean', 1, (line) => line.replaceAll('model.shop.revenue', 'model.shop.broken'));
  await importLater('build-mixed', 2);
  expect((await report('1002')).stdout).toContain('\nsince: new in this run, last good #1001\n');
  await importLater('build-mixed', 3);
  const { stdout } = await report('1003');
  expect(stdout).toContain('\nsince: failing since #1002 (2 runs), last good #1001\n');
  // What is so of the run is not said of a node again; this test was not in the run that did well.
  expect(stdout).toMatch(/ut_wrong [^\n]*\n(?: {6}.*\n)* {6}failing since #1002 \(2 runs\)\n/);
  expect(stdout).toMatch(/\n\nrun again: dbt build --select broken\+ ut_target\+ 1\+status_strict\n$/);
  for (const format of ['markdown', 'html'])
    expect((await report('1003', '--format', format)).stdout).toContain(
      'failing since #1002 (2 runs), last good #1001',
    );
  expect((await report('1001')).stdout).not.toMatch(/since:|run again:/);
});
