import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import Database from 'libsql';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { openSqliteState } from '../../src/storage/sqlite-state.js';
import { runBridge } from '../e2e/run-bridge.js';
import { SAMPLES, sampleTraceId } from '../fake/sample-run.js';
import { BridgeProcess } from '../tool/bridge-process.js';
import { sendSample } from '../tool/send-sample.js';
import { TestDatabase } from '../tool/test-database.js';
import { traceIdsIn } from '../tool/trace-ids.js';
import { until } from '../tool/until.js';

// Imported in this order: runs 1001 to 1003; the first is made three days old, the second two, the third one.
const RUNS = ['build-clean', 'build-mixed', 'parse'] as const;
const DAY_MS = 86_400_000;

let dir: string;
let data: string;
const started: BridgeProcess[] = [];
vi.setConfig({ testTimeout: 90_000, hookTimeout: 60_000 });
beforeEach(async () => {
  dir = mkdtempSync(join(tmpdir(), 'run-bridge-retention-'));
  data = join(dir, 'data');
  const files = RUNS.map((sample) => new URL(`../../${SAMPLES}/${sample}/otel.jsonl`, import.meta.url).pathname);
  for (const file of files) {
    expect(await runBridge(['import', file, '--data-dir', data], { cwd: dir })).toMatchObject({ exitCode: 0 });
  }
  const database = new Database(join(data, 'state.db'));
  for (const [index, sample] of RUNS.entries()) {
    const endedUnixMs = Date.now() - (RUNS.length - index) * DAY_MS;
    database
      .prepare('update runs set last_seen_unix_ms = ? where trace_id = ?')
      .run(endedUnixMs, sampleTraceId(sample));
    database.prepare('update executions set finished_unix_ms = ? where id = ?').run(endedUnixMs, 1001 + index);
    const artifact = join(data, 'artifacts', String(1001 + index), '1', 'run', 'model.sql');
    mkdirSync(dirname(artifact), { recursive: true });
    writeFileSync(artifact, 'select 1');
  }
  database.close();
});
afterEach(async () => {
  for (const bridge of started.splice(0)) await bridge.stop('SIGKILL');
  rmSync(dir, { recursive: true, force: true });
});

const retain = (...args: string[]) => runBridge(['retain', '--data-dir', data, ...args], { cwd: dir });
const kept = () => RUNS.filter((sample) => existsSync(join(data, 'runs', sampleTraceId(sample))));
const keptArtifacts = () => readdirSync(join(data, 'artifacts')).filter((name) => /^\d+$/.test(name));

async function serve(args: readonly string[], env: Readonly<Record<string, string>> = {}): Promise<BridgeProcess> {
  const bridge = await BridgeProcess.start({ dataFolder: data, args: ['--log-format', 'json', ...args], env });
  started.push(bridge);
  return bridge;
}
function lines(bridge: BridgeProcess, message: string): Record<string, unknown>[] {
  const all = bridge.stderr.split('\n').flatMap((line) => (line.startsWith('{') ? [JSON.parse(line)] : []));
  return all.filter(({ msg }) => msg === message);
}
async function listRuns(bridge: BridgeProcess): Promise<number[]> {
  const authorization = `Token ${readFileSync(join(data, 'admin-token'), 'utf8').trim()}`;
  const answer = await fetch(`${bridge.webUrl}/api/v2/accounts/10001/runs/`, { headers: { authorization } });
  return ((await answer.json()) as { data: { id: number }[] }).data.map(({ id }) => id);
}

describe('retention by age', () => {
  test('says what it would remove, and then removes it, files and rows together', async () => {
    const dry = await retain('--dry-run', '--retain-telemetry', '60h');
    expect(dry).toMatchObject({
      exitCode: 0,
      stdout: expect.stringMatching(
        /^telemetry: would remove 1 runs, 5 files, \d{5,} bytes\nartifacts: no limit is set\ndeliveries: would remove 0 deliveries, 0 bytes\nforeign: would remove 0 files, 0 bytes\n$/,
      ),
    });
    expect(kept()).toEqual(RUNS);
    const done = await retain('--retain-telemetry', '60h');
    expect(done.stdout).toBe(dry.stdout.replaceAll('would remove', 'removed'));
    expect([kept(), keptArtifacts()]).toEqual([
      ['build-mixed', 'parse'],
      ['1002', '1003'],
    ]);
    expect(readdirSync(join(data, 'removed'))).toEqual([]);
    expect(await listRuns(await serve([]))).toEqual([1002, 1003]);
  });

  test('is done by a server, which says so; a run of which more comes is there anew', async () => {
    const bridge = await serve(['--retain-telemetry', '1d']);
    const [line] = await until('the removal', () => {
      const found = lines(bridge, 'removed expired data');
      return found.length > 0 && found;
    });
    expect(line).toMatchObject({ kind: 'telemetry', count: 3, fileCount: 15 });
    expect(line?.sizeBytes).toBeGreaterThan(100_000);
    expect([kept(), keptArtifacts(), await listRuns(bridge)]).toEqual([[], [], []]);
    await sendSample(bridge.otlpUrl, 'build-clean');
    await bridge.finished(sampleTraceId('build-clean'));
    await until('the new run', async () => (await listRuns(bridge)).includes(1004));
    expect(await retain('--retain-telemetry', '1d')).toMatchObject({
      exitCode: 2,
      stderr: expect.stringContaining('is in use by process'),
    });
    // What the server is being sent stays.
    const incoming = join(data, 'artifacts', 'incoming');
    mkdirSync(incoming, { recursive: true });
    writeFileSync(join(incoming, 'half'), 'half of it');
    expect(await retain('--dry-run', '--retain-telemetry', '1d', '--retain-artifacts', '1d')).toMatchObject({
      exitCode: 0,
    });
    expect(readdirSync(incoming)).toEqual(['half']);
  });

  test('takes artifacts away and leaves their run', async () => {
    const bridge = await serve(['--retain-artifacts', '36h']);
    const found = await until('the removal', () => lines(bridge, 'removed expired data')[0]);
    expect(found).toMatchObject({ kind: 'artifacts', count: 2, fileCount: 2, sizeBytes: 16 });
    expect([kept(), keptArtifacts(), await listRuns(bridge)]).toEqual([RUNS, ['1003'], [1001, 1002, 1003]]);
  });

  test('leaves what a destination has not got, and takes it when there is no such destination any more', async () => {
    const args = ['--retain-telemetry', '1d'];
    const endpoint = { OTEL_EXPORTER_OTLP_ENDPOINT: 'http://127.0.0.1:1' };
    const first = await serve([], endpoint);
    await sendSample(first.otlpUrl, 'interrupted');
    const traceId = sampleTraceId('interrupted');
    await first.finished(traceId);
    await until('the new run', async () => (await listRuns(first)).length === 4);
    await first.stop();
    const database = new Database(join(data, 'state.db'));
    const oldUnixMs = Date.now() - 2 * DAY_MS;
    database.prepare('update runs set last_seen_unix_ms = ? where trace_id = ?').run(oldUnixMs, traceId);
    database.prepare('update executions set finished_unix_ms = ? where id = 1004').run(oldUnixMs);
    database.close();
    const second = await serve(args, endpoint);
    await until('the removal', () => lines(second, 'removed expired data').length > 0);
    // The others were there before the destination was.
    expect(await listRuns(second)).toEqual([1004]);
    expect(existsSync(join(data, 'runs', traceId))).toBe(true);
    await second.stop();
    const third = await serve(args);
    await until('the removal', () => lines(third, 'removed expired data').length > 0);
    expect(existsSync(join(data, 'runs', traceId))).toBe(false);
  });
});

describe('retention by size', () => {
  test('removes the oldest runs until the rest is within it, and nothing that ended minutes ago', async () => {
    const all = Number(/(\d+) bytes/.exec((await retain('--dry-run', '--retain-telemetry', '1h')).stdout)?.[1]);
    const { stdout } = await retain('--retain-telemetry', String(all - 50_000), '--retain-artifacts', '8');
    expect(stdout).toMatch(
      /^telemetry: removed 1 runs, 5 files, \d+ bytes\nartifacts: removed 1 runs, 1 files, 8 bytes\ndeliveries: /,
    );
    expect([kept(), keptArtifacts()]).toEqual([['build-mixed', 'parse'], ['1003']]);
    const file = new URL(`../../${SAMPLES}/interrupted/otel.jsonl`, import.meta.url).pathname;
    await runBridge(['import', file, '--data-dir', data], { cwd: dir });
    const bare = await retain('--retain-telemetry', '1');
    expect(bare.stdout).toMatch(
      /^telemetry: removed 2 runs, .*; \d+ bytes more than there should be are under way, minutes old, or wait/,
    );
    expect(traceIdsIn(data)).toEqual([sampleTraceId('interrupted')]);
  });
});

describe('retention of telemetry of other services', () => {
  test('removes files of it that are old, but for the one that is written to', async () => {
    const folder = join(data, 'foreign');
    mkdirSync(folder);
    const names = ['00000001.otlp.jsonl', '00000002.otlp.jsonl', '00000003.otlp.jsonl'];
    for (const [index, name] of names.entries()) {
      writeFileSync(join(folder, name), '{"resourceSpans":[]}\n');
      const atS = Date.now() / 1_000 - ((names.length - index) * DAY_MS) / 1_000;
      utimesSync(join(folder, name), atS, atS);
    }
    const { stdout } = await retain('--retain-telemetry', '36h');
    expect(stdout).toMatch(/\nforeign: removed 2 files, 42 bytes\n$/);
    expect(readdirSync(folder)).toEqual(names.slice(2));
  });
});

describe('a program that is killed between rows and files', () => {
  test('has nothing half at its next start: what it was removing is gone, whatever the settings say then', async () => {
    const state = await openSqliteState(join(data, 'state.db'));
    const group = await state.retention.groupOf(1001, []);
    expect(group && (await state.retention.removeRuns(group, [], Date.now()))).toHaveLength(2);
    await state.close();
    expect([kept(), keptArtifacts()]).toEqual([RUNS, ['1001', '1002', '1003']]);
    const bridge = await serve([]);
    await until('the removal', () => lines(bridge, 'finished interrupted removals').length > 0);
    expect([kept(), keptArtifacts()]).toEqual([
      ['build-mixed', 'parse'],
      ['1002', '1003'],
    ]);
    expect(await listRuns(bridge)).toEqual([1002, 1003]);
  });
});

describe('retention with the state in PostgreSQL', () => {
  test('removes files and rows together, and ends at its start what a kill left', async () => {
    const database = await TestDatabase.create();
    try {
      data = join(dir, 'with-postgres');
      const env = { DATABASE_URL: database.url };
      const bridge = await serve([], env);
      for (const sample of ['build-clean', 'parse']) {
        await sendSample(bridge.otlpUrl, sample);
        await bridge.finished(sampleTraceId(sample));
        await until('the new run', async () => (await listRuns(bridge)).length === (sample === 'parse' ? 2 : 1));
      }
      await bridge.stop();
      const oldUnixMs = Date.now() - 2 * DAY_MS;
      const traceId = sampleTraceId('build-clean');
      await database.tell(`update runs set last_seen_unix_ms = ${oldUnixMs} where trace_id = '${traceId}'`);
      await database.tell(`update executions set finished_unix_ms = ${oldUnixMs} where id = 1001`);
      // Of a removal whose rows went before the program was killed.
      await database.tell(`insert into removals (kind, id, noted_unix_ms) values ('trace', '${'a'.repeat(32)}', 1)`);
      mkdirSync(join(data, 'runs', 'a'.repeat(32)));
      const again = await serve(['--retain-telemetry', '1d'], env);
      const line = await until('the removal', () => lines(again, 'removed expired data')[0]);
      expect(line).toMatchObject({ kind: 'telemetry', count: 1 });
      expect(await listRuns(again)).toEqual([1002]);
      expect(traceIdsIn(data)).toEqual([sampleTraceId('parse')]);
      expect((await database.tell('select count(*)::int as left from removals')).rows).toEqual([{ left: 0 }]);
      await again.stop();
    } finally {
      for (const one of started.splice(0)) await one.stop('SIGKILL');
      await database.drop();
    }
  });
});
