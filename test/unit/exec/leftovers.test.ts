import {
  appendFileSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { otlpReading } from '../../../src/cli/otlp-reading.js';
import { systemClock } from '../../../src/core/clock.js';
import { silentLogger } from '../../../src/core/logger.js';
import { writeCommandEntry } from '../../../src/exec/command-folder.js';
import { Leftovers } from '../../../src/exec/leftovers.js';
import { ArtifactError } from '../../../src/storage/artifacts.js';
import { DataFolderLock } from '../../../src/storage/data-folder-lock.js';
import { SAMPLES } from '../../fake/sample-run.js';

const sample = join(SAMPLES, 'build-mixed', 'otel.jsonl');
const recordCount = readFileSync(sample, 'utf8').trimEnd().split('\n').length;

let dir: string;
let folder: string;
let taken: number;
let calls: (readonly [string, string])[];
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'run-bridge-spool-'));
  folder = join(dir, 'spool', 'step-1');
  taken = 0;
  calls = [];
});
afterEach(() => rmSync(dir, { recursive: true }));

const holder = { pid: 1, since: new Date(0).toISOString(), address: null };
/** Leaves what a command leaves whose process was killed. @returns its lock. */
async function leave(to: string | null = null): Promise<DataFolderLock> {
  mkdirSync(folder, { recursive: true });
  const file = join(folder, 'otel.jsonl');
  copyFileSync(sample, file);
  const names = { runKey: null, job: 'nightly', environment: null, project: null, reason: null, isLast: false };
  const start = { stepId: 'step-1', ...names, startedUnixMs: 1, command: ['dbt', 'build'] };
  writeCommandEntry(folder, {
    start,
    to,
    file: { path: file, from: undefined, traceIds: [], seenTraceIds: [] },
    resourceAttributes: '',
    end: null,
  });
  return DataFolderLock.acquire(folder, holder);
}

/** When the command is said to have ended. */
let endedAtMs: number;
/** What keeping `broken.json` fails with. */
let trouble: Error;

/** One look at the folder. */
async function look(to: string | null = null): Promise<void> {
  const spool = new Leftovers(dir, to, {
    consumer: {
      async consume({ batches }) {
        for (const { records } of batches) taken += records.length;
      },
    },
    registry: {
      async register({ stepId }) {
        calls.push([stepId, 'begun']);
        return {
          runId: 1,
          stepIndex: 1,
          job: 'nightly',
          reason: null,
          accountId: 10_001,
          jobId: 1,
          projectId: 1,
          environmentId: 1,
        };
      },
      async attach(stepId) {
        calls.push([stepId, 'attached']);
      },
      async end(stepId, { kind }, endedUnixMs) {
        calls.push([stepId, kind]);
        endedAtMs = endedUnixMs;
      },
      async expectArtifacts(stepId, paths) {
        calls.push([stepId, `expects ${paths.join(', ')}`]);
      },
      async endArtifacts(stepId, reason) {
        calls.push([stepId, `has its artifacts, but for ${reason ?? 'none'}`]);
      },
    },
    artifacts: {
      async put({ path }, file) {
        if (path === 'broken.json') throw trouble;
        calls.push([path, readFileSync(file, 'utf8')]);
      },
    },
    ...{ otlp: () => otlpReading([]), clock: systemClock, logger: silentLogger, pid: process.pid },
  });
  await spool.start();
  await Reflect.get(spool, 'working');
  await spool.shutdown();
}

it('ends a command whose end nobody saw with its last record, or its start, and not when it is taken in', async () => {
  (await leave()).release();
  await look();
  const times = [...readFileSync(sample, 'utf8').matchAll(/time_unix_nano":"(\d{19})"/g)].map(([, nano]) =>
    Number(nano),
  );
  expect(Math.abs(endedAtMs - Math.max(...times) / 1e6)).toBeLessThanOrEqual(1);
  const lock = await leave();
  writeFileSync(join(folder, 'otel.jsonl'), '');
  lock.release();
  await look();
  expect(endedAtMs).toBe(1);
});

it('keeps lines that are no records', async () => {
  const lock = await leave();
  appendFileSync(join(folder, 'otel.jsonl'), '{"torn');
  lock.release();
  await look();
  expect(taken).toBe(recordCount);
  expect(JSON.parse(readFileSync(join(dir, 'rejects.jsonl'), 'utf8'))).toMatchObject({ text: '{"torn' });
});

it('takes in what a dead command left, once, and tells its step', async () => {
  (await leave()).release();
  await look();
  await look();
  expect([taken, calls]).toEqual([
    recordCount,
    [
      ['step-1', 'begun'],
      ['step-1', 'attached'],
      ['step-1', 'unknown'],
      ['step-1', 'has its artifacts, but for none'],
    ],
  ]);
  expect(existsSync(folder)).toBe(false);
});

it("takes of a user's own file the trace that came while the command was at work, and none that came later", async () => {
  const [, traceId] = /"trace_id":"([0-9a-f]{32})"/.exec(readFileSync(sample, 'utf8')) ?? [];
  for (const [seen, count] of [
    [[], 0],
    [[traceId], recordCount],
    [[traceId, 'b'.repeat(32)], 0],
  ] as const) {
    taken = 0;
    const lock = await leave();
    const shared = join(dir, 'own.jsonl');
    renameSync(join(folder, 'otel.jsonl'), shared);
    const entry = JSON.parse(readFileSync(join(folder, 'command.json'), 'utf8'));
    entry.file = { ...entry.file, path: shared, seen_trace_ids: seen };
    writeFileSync(join(folder, 'command.json'), JSON.stringify(entry));
    lock.release();
    await look();
    expect([taken, calls.at(-2), existsSync(folder)]).toEqual([count, ['step-1', 'unknown'], false]);
  }
});

it('leaves one alone whose command lives', async () => {
  const lock = await leave();
  await look();
  lock.release();
  expect([taken, existsSync(folder)]).toEqual([0, true]);
});

it('takes the records in where what is known of the command is damaged, of no known step', async () => {
  (await leave()).release();
  writeFileSync(join(folder, 'command.json'), '{"step_id":');
  await look();
  expect([taken, calls]).toEqual([recordCount, []]);
});

it('takes in what was to go to one bridge where that is the one', async () => {
  (await leave('http://bridge:4318')).release();
  await look();
  await look('http://other:4318');
  expect(taken).toBe(0);
  await look('http://bridge:4318');
  expect(taken).toBe(recordCount);
});

it('brings artifacts that were left behind to where they belong, before it says that all are there', async () => {
  (await leave()).release();
  mkdirSync(join(folder, 'artifacts', 'run'), { recursive: true });
  writeFileSync(join(folder, 'artifacts', 'manifest.json'), '{}');
  writeFileSync(join(folder, 'artifacts', 'run', 'a.sql'), 'select 1');
  await look();
  expect(calls).toEqual([
    ['step-1', 'begun'],
    ['step-1', 'attached'],
    ['step-1', 'expects manifest.json, run/a.sql'],
    ['step-1', 'unknown'],
    ['manifest.json', '{}'],
    ['run/a.sql', 'select 1'],
    ['step-1', 'has its artifacts, but for none'],
  ]);
  expect(existsSync(folder)).toBe(false);
});

it('keeps artifacts that cannot be kept just now for the next time, and leaves out what will never be taken', async () => {
  (await leave()).release();
  mkdirSync(join(folder, 'artifacts'));
  writeFileSync(join(folder, 'artifacts', 'broken.json'), '{}');
  trouble = new ArtifactError('unavailable', 'nobody answers');
  await look();
  expect([existsSync(folder), calls.at(-1)]).toEqual([true, ['step-1', 'unknown']]);
  trouble = new ArtifactError('tooLarge', 'too large');
  await look();
  expect([existsSync(folder), calls.at(-1)]).toEqual([false, ['step-1', 'has its artifacts, but for too large']]);
});
