import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { ExportRequest } from '../../src/otlp/export-request.js';
import { sampleRecords, sampleTraceId } from '../fake/sample-run.js';
import { writeBareBodies } from '../tool/bare-bodies.js';
import { BridgeProcess } from '../tool/bridge-process.js';
import { until } from '../tool/until.js';
import { runBridge } from './run-bridge.js';

// Engines whose resource is brand and version alone: they heed no OTEL_RESOURCE_ATTRIBUTES, so nothing of theirs says whose they are.
const ENGINE = new URL('../tool/stand-in-engine.mjs', import.meta.url).pathname;
const TRACE = '4bf92f3577b34da6a3ce929d0e0e4736';
let dir: string;
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'run-bridge-bare-'));
});
afterEach(() => rmSync(dir, { recursive: true, force: true }));

/** The two commands of `overlapping`, which share the trace of an orchestrator: writes the bodies of each to a folder of its own. */
function writeOverlapping(): void {
  const records = sampleRecords('overlapping');
  const of = new Set(
    records.slice(records.findIndex(({ spanId }) => spanId === '60a6b9b6f1b01207')).map((one) => one.spanId),
  );
  const isOfB = ({ resources }: ExportRequest) =>
    resources.some(({ scopes }) =>
      scopes.some((scope) => scope.records.some(({ spanId }) => [...of].some((id) => id === spanId))),
    );
  writeBareBodies('overlapping', join(dir, 'a'), (request) => !isOfB(request));
  writeBareBodies('overlapping', join(dir, 'b'), isOfB);
}

const byVerdict = (a: { verdict: string }, b: { verdict: string }) => a.verdict.localeCompare(b.verdict);
const steps = (folder: string, traceId: string) =>
  JSON.parse(readFileSync(join(folder, 'runs', traceId, 'run.json'), 'utf8')).steps;

describe('an engine whose resource is nothing but brand and version', () => {
  let bridge: BridgeProcess;
  afterEach(() => bridge.remove());

  /** Runs the stand-in under `exec`, which hands over to the bridge; it ends when the other one has sent all that it has, too. */
  function task(name: string, other: string, exitCode: number) {
    const script = `
      '${process.execPath}' '${ENGINE}' '${join(dir, name)}' --no-file && touch '${dir}/${name}.sent'
      until [ -e '${dir}/${other}.sent' ]; do sleep 0.1; done; exit ${exitCode}`;
    return runBridge(['exec', '--to', bridge.otlpUrl, '--job', `job ${name}`, '--', 'sh', '-c', script], {
      cwd: dir,
      env: {
        PATH: process.env.PATH ?? '',
        HOME: dir,
        RUN_BRIDGE_DATA_DIR: join(dir, `data-${name}`),
        TRACEPARENT: `00-${TRACE}-00f067aa0ba902b7-01`,
      },
      timeoutMs: 60_000,
    });
  }

  test('is told apart under several exec in one trace, at the same time', async () => {
    writeOverlapping();
    bridge = await BridgeProcess.start();
    const ends = await Promise.all([task('a', 'b', 0), task('b', 'a', 1)]);
    expect(ends.map(({ exitCode, stderr }) => [exitCode, stderr])).toEqual([
      [0, ''],
      [1, ''],
    ]);
    await bridge.finished(TRACE);
    const found = await until('both steps', () => {
      const all = steps(bridge.dataFolder, TRACE);
      return all.every(({ step }: { step: unknown }) => step !== null) && all;
    });
    // In the order in which their first records came, which is that of the machine.
    expect(found.toSorted(byVerdict)).toMatchObject([
      { verdict: 'error', step: { job: 'job b', index: 1, ending: { kind: 'exited', exit_code: 1 } } },
      { verdict: 'success', step: { job: 'job a', index: 1, ending: { kind: 'exited', exit_code: 0 } } },
    ]);
    const resources = readFileSync(join(bridge.runFolder(TRACE), 'resources.jsonl'), 'utf8');
    expect(new Set(resources.match(/"run_bridge\.step\.id":"[^"]+"/g)).size).toBe(2);
  }, 120_000);

  test('is of its step where the bridge itself runs it as a job, one that failed before it among them', async () => {
    writeBareBodies('build-mixed', join(dir, 'mixed'));
    writeBareBodies('build-clean', join(dir, 'clean'));
    const command = (name: string) => `[${process.execPath}, ${ENGINE}, ${join(dir, name)}, --no-file]`;
    writeFileSync(
      join(dir, 'run-bridge.yaml'),
      `jobs:\n  nightly: { environment: prod, command: [${command('mixed')}, ${command('clean')}] }\n`,
    );
    bridge = await BridgeProcess.start({ args: ['--config', join(dir, 'run-bridge.yaml')] });
    const authorization = `Token ${readFileSync(join(bridge.dataFolder, 'admin-token'), 'utf8').trim()}`;
    const ask = async (path: string, method = 'GET') => {
      const body = method === 'GET' ? {} : { body: '{"cause":"a test"}' };
      const url = `${bridge.webUrl}/api/v2/accounts/10001${path}`;
      const answer = await fetch(url, { method, headers: { authorization }, ...body });
      return JSON.parse(await answer.text()).data;
    };
    const [job] = await ask('/jobs/');
    const { id } = await ask(`/jobs/${job.id}/run/`, 'POST');
    await until('the end of the run', async () => (await ask(`/runs/${id}/`)).is_complete, 60_000);
    for (const [index, name] of ['build-mixed', 'build-clean'].entries()) {
      const { job: of, steps: own } = JSON.parse(
        readFileSync(join(bridge.runFolder(sampleTraceId(name)), 'run.json'), 'utf8'),
      );
      expect(of).toMatchObject({ name: 'nightly', environment: 'prod', run_id: id });
      expect(own).toMatchObject([{ step: { index: index + 1, ending: { kind: 'exited', exit_code: 0 } } }]);
    }
  }, 120_000);
});

describe('an endpoint whose path says job, environment and project', () => {
  let bridge: BridgeProcess;
  beforeEach(async () => {
    bridge = await BridgeProcess.start();
  });
  afterEach(() => bridge.remove());

  const env = () => ({ PATH: process.env.PATH ?? '', HOME: dir, RUN_BRIDGE_DATA_DIR: join(dir, 'data') });
  const scopeOf = async (traceId: string) => {
    const authorization = `Token ${readFileSync(join(bridge.dataFolder, 'admin-token'), 'utf8').trim()}`;
    const { job, environment, project } = await until(`the end of ${traceId}`, async () => {
      const answer = await fetch(`${bridge.webUrl}/api/run-bridge/v1/runs/${traceId}`, { headers: { authorization } });
      const { data } = JSON.parse(await answer.text());
      return data?.is_complete === true && data;
    });
    return [job.name, environment.name, project.name];
  };

  test.each([
    ['in --to', (url: string) => ({ options: ['--to', url], more: {} })],
    ['in OTEL_EXPORTER_OTLP_ENDPOINT', (url: string) => ({ options: [], more: { OTEL_EXPORTER_OTLP_ENDPOINT: url } })],
  ])(
    '%s is that of a bridge for exec, and says whose its run is, below what options say',
    async (_where, how) => {
      writeBareBodies('build-clean', join(dir, 'clean'));
      const { options, more } = how(`${bridge.otlpUrl}/environment/prod/job/of%20the%20path/`);
      const command = [process.execPath, ENGINE, join(dir, 'clean'), '--no-file'];
      const { exitCode, stderr } = await runBridge(['exec', ...options, '--environment', 'said', '--', ...command], {
        cwd: dir,
        env: { ...env(), ...more },
        timeoutMs: 60_000,
      });
      expect([exitCode, stderr]).toEqual([0, '']);
      const traceId = sampleTraceId('build-clean');
      expect(await scopeOf(traceId)).toEqual(['of the path', 'said', 'default']);
      expect(steps(bridge.dataFolder, traceId)).toMatchObject([{ step: { index: 1, ending: { kind: 'exited' } } }]);
    },
    120_000,
  );

  test('in --to of import says it of a file, line by line', async () => {
    const file = new URL('../fixture/samples/build-clean/otel.jsonl', import.meta.url).pathname;
    const imported = await runBridge(['import', '--to', `${bridge.otlpUrl}/project/shop/job/nightly`, file], {
      cwd: dir,
      env: env(),
      timeoutMs: 60_000,
    });
    expect(imported.exitCode, imported.stderr).toBe(0);
    const traceId = sampleTraceId('build-clean');
    expect(await scopeOf(traceId)).toEqual(['nightly', 'default', 'shop']);
    const log = readFileSync(join(bridge.runFolder(traceId), 'telemetry.jsonl'), 'utf8');
    expect(log === readFileSync(file, 'utf8') ? 'the same' : 'different').toBe('the same');
  }, 120_000);
});
