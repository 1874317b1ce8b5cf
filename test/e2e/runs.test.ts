import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { SAMPLES, sampleLines } from '../fake/sample-run.js';
import { hostileLines } from '../tool/hostile-run.js';
import { runBridge } from './run-bridge.js';

let dir: string;
const run = (...args: readonly string[]) => runBridge([...args, '--data-dir', 'data'], { cwd: dir });
const sample = (name: string) => resolve(SAMPLES, name, 'otel.jsonl');
const engine = (name: string) => [
  'node',
  '-e',
  `process.stdout.write(require('fs').readFileSync(${JSON.stringify(sample(name))}))`,
];

beforeAll(async () => {
  dir = mkdtempSync(join(tmpdir(), 'run-bridge-runs-'));
  await run('import', sample('build-clean'));
  await run('import', sample('build-mixed-fusion'));
  const exec = ['exec', '--job', 'nightly', '--environment', 'prod', '--project', 'shop', '--data-dir', 'data', '--'];
  await runBridge([...exec, ...engine('build-clean'), '\u001b[31mred'], { cwd: dir });
});
afterAll(() => rmSync(dir, { recursive: true, force: true }));

const idsOf = (stdout: string) => JSON.parse(stdout).runs.map(({ id }: { readonly id: number }) => id);

describe('run-bridge runs', () => {
  test('lists runs, the last to start first, with what they are of and how they ended', async () => {
    const { exitCode, stdout, stderr } = await run('runs');
    expect({ exitCode, stderr }).toEqual({ exitCode: 0, stderr: '' });
    const [head, ...lines] = stdout.trimEnd().split('\n');
    expect(head).toMatch(/^RUN +STATUS +JOB +ENVIRONMENT +PROJECT +STARTED \(UTC\) +LENGTH +WHY$/);
    expect(lines).toEqual([
      expect.stringMatching(/^1003 +success +nightly +prod +shop +20\d\d-\d\d-\d\d \d\d:\d\d /),
      expect.stringMatching(/^1001 +success +adhoc +default +default +2026-11-21 00:43 +462 ms$/),
      expect.stringMatching(
        /^1002 +failed +adhoc +default +default +2026-11-21 00:43 +1\.8 s +1 node failed with an error, 2 tests failed: model broken: /,
      ),
    ]);
  });

  test.each([
    [['--job', 'nightly'], [1003]],
    [['--job', 'night'], []],
    [
      ['--environment', 'default', '--project', 'default'],
      [1001, 1002],
    ],
    [['--status', 'error,running'], [1002]],
    [['--since', '2026-11-22'], [1003]],
    [['--text', 'Nonexistent_Column'], [1002]],
    [['--text', 'nonexistent_column', '--status', 'success'], []],
    [['--limit', '1'], [1003]],
    [['--account', '10002'], []],
  ] as const)('takes filters: %j', async (filters, ids) => {
    const { exitCode, stdout } = await run('runs', '--format', 'json', ...filters);
    expect([exitCode, idsOf(stdout)]).toEqual([0, ids]);
  });

  test('says how many there are beyond those that it shows, and where none is', async () => {
    expect((await run('runs', '--limit', '2')).stdout).toContain('\nand 1 more of 3 runs; --limit shows them\n');
    expect((await run('runs', '--job', 'none')).stdout).toBe('no run is like that\n');
    expect(await runBridge(['runs', '--data-dir', 'elsewhere'], { cwd: dir })).toMatchObject({
      exitCode: 1,
      stderr: expect.stringContaining('set the folder with --data-dir'),
    });
  });

  test.each([
    [['--status', 'eror'], 'did you mean error?'],
    [['--since', 'monday'], 'neither a time such as 24h nor a date'],
    [['--limit', '0'], 'not a number from 1 to 1000'],
    [['--format', 'xml'], 'neither text nor json'],
  ])('refuses what it does not understand, and says what it would: %j', async (args, hint) => {
    expect(await run('runs', ...args)).toMatchObject({ exitCode: 2, stderr: expect.stringContaining(hint) });
  });
});

describe('run-bridge diff', () => {
  /** A later run of `build-mixed-fusion`, in which one model is slower, another one fails, and a third is not there. */
  function laterRun(): string {
    const lines = sampleLines('build-mixed-fusion').flatMap((line) => {
      const record = JSON.parse(line);
      const id: unknown = record.attributes?.unique_id;
      if (id === 'model.shop.daily') return [];
      if (record.record_type === 'SpanEnd') {
        const isProcessed = String(record.event_type).endsWith('.NodeProcessed');
        if (isProcessed && id === 'seed.shop.raw_customers') record.attributes.node_outcome = 'NODE_OUTCOME_ERROR';
        const isWhole = String(record.event_type).endsWith('.Invocation');
        const isOrders = id === 'seed.shop.raw_orders' && /NodeProcessed|NodeEvaluated/.test(record.event_type);
        if (isWhole || isOrders) record.end_time_unix_nano = String(BigInt(record.end_time_unix_nano) + 3_000_000_000n);
      }
      return [JSON.stringify(record).replaceAll('01a1fb8ed69e7ef184c99d1f72b8766e', 'a'.repeat(32))];
    });
    const path = join(dir, 'later.jsonl');
    writeFileSync(path, `${lines.join('\n')}\n`);
    return path;
  }

  test('says what ended otherwise, what got slower, and what is gone, of a run and a file', async () => {
    const { exitCode, stdout, stderr } = await run('diff', '1002', laterRun());
    expect({ exitCode, stderr }).toEqual({ exitCode: 0, stderr: '' });
    expect(stdout).toMatch(
      /^before: build: failed after 1\.8 s, .*\nafter: {2}build: failed after 4\.8 s, .* UTC, 3\.0 s longer\n/,
    );
    expect(stdout).toContain('\nended otherwise (1):\n  seed.shop.raw_customers: success before, error after\n');
    expect(stdout).toMatch(/\nslower \(1\):\n {2}seed\.shop\.raw_orders: 2\.5 s longer \(19 ms, then 2\.5 s\)\n/);
    const json = await run('diff', '1002', laterRun(), '--format', 'json');
    const { commands, new_commands, gone_commands } = JSON.parse(json.stdout);
    expect(commands).toHaveLength(1);
    expect(commands[0].changed).toMatchObject([
      { unique_id: 'seed.shop.raw_customers', before: { verdict: 'success' }, after: { verdict: 'error' } },
    ]);
    expect([new_commands, gone_commands]).toEqual([[], []]);
  });

  test('of two runs names new nodes, and nothing of a run and itself', async () => {
    const { stdout } = await run('diff', '1001', '1002');
    expect(stdout).toContain('\nnew (7):\n');
    expect((await run('diff', '1001', '1001')).stdout).toContain(
      "every node ended as before, and none took 100 ms more or less of the run's time\n",
    );
  });

  test('lets no text of a run reach the terminal as more than a text', async () => {
    writeFileSync(join(dir, 'hostile.jsonl'), `${hostileLines().join('\n')}\n`);
    for (const files of [
      ['hostile.jsonl', sample('build-clean')],
      [sample('build-clean'), 'hostile.jsonl'],
    ]) {
      const { exitCode, stdout } = await run('diff', ...files);
      expect(exitCode).toBe(0);
      expect(stdout).toContain('onerror=alert(2)');
      expect(stdout.replaceAll('\n', '')).not.toMatch(/[\p{Cc}\u202a-\u202e]/u);
    }
  });

  test('needs two runs that there are', async () => {
    expect(await run('diff', '1001')).toMatchObject({ exitCode: 2, stderr: expect.stringContaining('missing') });
    expect(await run('diff', '1001', '4711')).toMatchObject({ exitCode: 1, stderr: expect.stringContaining('4711') });
  });
});
