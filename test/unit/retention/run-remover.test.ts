import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { RunFinder } from '../../../src/api/native/run-finder.js';
import { parseTraceId, type TraceId } from '../../../src/record/telemetry-record.js';
import { Removals } from '../../../src/retention/removals.js';
import { NO_LOCK, RetainedTelemetry } from '../../../src/retention/retained-kinds.js';
import { RunRemover } from '../../../src/retention/run-remover.js';
import { TelemetryFolder } from '../../../src/retention/telemetry-storage.js';
import { FIRST_ACCOUNT_ID } from '../../../src/storage/account-store.js';
import type { State } from '../../../src/storage/state.js';
import { openFreshState } from '../../fake/fresh-state.js';
import { noteOf, rowOf } from '../../fake/noted-run.js';
import { RecordingLogger } from '../../fake/recording-logger.js';

const [A, B] = ['a', 'b'].map((digit) => parseTraceId(digit.repeat(32)) as TraceId) as [TraceId, TraceId];

let folder: string;
let state: State;
let logger: RecordingLogger;
let isBucketAway: boolean;
let isWritten: boolean;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'run-bridge-remover-'));
  state = await openFreshState(join(folder, 'state.db'));
  logger = new RecordingLogger();
  isBucketAway = false;
  isWritten = false;
});
afterEach(async () => {
  await state.close();
  await rm(folder, { recursive: true, force: true });
});

const runFolder = (traceId: TraceId) => join(folder, 'runs', traceId);

async function add(traceId: TraceId, isOpen = false): Promise<number> {
  mkdirSync(runFolder(traceId), { recursive: true });
  writeFileSync(join(runFolder(traceId), 'telemetry.jsonl'), '0123456789');
  await state.runs.save([rowOf(traceId, 1_000, isOpen)]);
  await state.invocations.note([noteOf(traceId, 1_000, isOpen)], 1_000);
  const [runId = 0] = await state.traces.runsOf(FIRST_ACCOUNT_ID, traceId);
  return runId;
}

/** A run whose step has its records in a trace that another run has, too. */
async function addTo(traceId: TraceId, accountId = FIRST_ACCOUNT_ID): Promise<number> {
  const { executions } = state;
  const begun = { runKey: 'night', job: 'nightly', environment: null, project: null, reason: null };
  const start = { ...begun, stepId: 's1', command: ['dbt'], startedUnixMs: 1, isLast: true };
  const { runId } = await executions.register(
    accountId === FIRST_ACCOUNT_ID ? start : { ...start, accountId },
    'local',
  );
  await executions.attach('s1', traceId);
  await executions.end('s1', { kind: 'exited', exitCode: 0 }, 2_000);
  await executions.settle(1_000_000);
  return runId;
}

function remover(destinations: readonly string[] = []): RunRemover {
  const place = new TelemetryFolder(folder);
  const store = state.retention;
  const openArtifacts = async () => ({
    usage: async () => ({ count: 2, sizeBytes: 5 }),
    removeRun: async () => {
      if (isBucketAway) throw new Error('the bucket is away');
      return { count: 0, sizeBytes: 0 };
    },
  });
  const removals = new Removals({ store, storage: place, openArtifacts });
  const lock = isWritten ? { whileLocked: async () => false } : NO_LOCK;
  const telemetry = new RetainedTelemetry(
    { maxAgeMs: null, maxBytes: null },
    { store, removals, storage: place, destinations, lock, openArtifacts, nowUnixMs: () => 5_000 },
  );
  return new RunRemover({ finder: new RunFinder(state), store, telemetry, removals, destinations, logger });
}

const remove = (name: number | string, isWithShared = false) =>
  remover().remove(FIRST_ACCOUNT_ID, String(name), isWithShared);

describe('a run that somebody wants removed', () => {
  it('goes with its rows and its files, and no other run does', async () => {
    const [runId, other] = [await add(A), await add(B)];
    expect(await remover().look(FIRST_ACCOUNT_ID, String(runId))).toMatchObject({
      run: { id: runId },
      sharedRunIds: [],
      problem: null,
      size: { fileCount: 3, sizeBytes: 15 },
    });
    expect(await remove(runId)).toEqual([runId]);
    expect([existsSync(runFolder(A)), existsSync(runFolder(B))]).toEqual([false, true]);
    expect(await state.catalog.findRun(FIRST_ACCOUNT_ID, runId)).toBeUndefined();
    expect(await state.catalog.findRun(FIRST_ACCOUNT_ID, other)).toBeDefined();
    expect(await state.retention.listRemovals()).toEqual([]);
    await expect(remove(runId)).rejects.toMatchObject({ status: 404 });
  });

  it('is found by its trace, and not by another account', async () => {
    const runId = await add(A);
    await expect(remover().remove(20_002, String(runId), true)).rejects.toMatchObject({ status: 404 });
    expect(await remove(A)).toEqual([runId]);
  });

  it('stays while it goes on', async () => {
    const runId = await add(A, true);
    await expect(remove(runId)).rejects.toThrow(
      `Run ${runId} is still going on: cancel it, or wait until it has ended.`,
    );
    expect(await remover().look(FIRST_ACCOUNT_ID, String(runId))).toMatchObject({
      problem: expect.stringContaining('still going on'),
      size: null,
    });
    expect(existsSync(runFolder(A))).toBe(true);
  });

  it('stays while records of it arrive', async () => {
    const runId = await add(A);
    isWritten = true;
    await expect(remove(runId)).rejects.toThrow('Try again in a few seconds');
    expect(await state.catalog.findRun(FIRST_ACCOUNT_ID, runId)).toBeDefined();
  });

  it('stays until each destination has got all of it', async () => {
    await state.cursors.register('own', 0);
    const runId = await add(A);
    await expect(remover(['own']).remove(FIRST_ACCOUNT_ID, String(runId), false)).rejects.toThrow(
      `A destination has not got all of run ${runId} yet`,
    );
    const cursor = { destination: 'own', traceId: A, tracesOffset: 10, logsOffset: 10, finishedAtBytes: 10 };
    await state.cursors.save([cursor]);
    expect(await remover(['own']).remove(FIRST_ACCOUNT_ID, String(runId), false)).toEqual([runId]);
  });

  it('takes those that share its trace along only where that is said', async () => {
    const runId = await add(A);
    const other = await addTo(A);
    expect(await remover().look(FIRST_ACCOUNT_ID, String(runId))).toMatchObject({
      sharedRunIds: [other],
      problem: null,
    });
    await expect(remove(runId)).rejects.toThrow(
      `shares its trace with run ${other}, and a trace is removed as a whole`,
    );
    expect(await remove(runId, true)).toEqual([runId, other].toSorted((a, b) => a - b));
    expect(existsSync(runFolder(A))).toBe(false);
  });

  it('is gone, and its files are noted, where a bucket cannot be reached', async () => {
    const runId = await add(A);
    isBucketAway = true;
    expect(await remove(runId)).toEqual([runId]);
    expect(existsSync(runFolder(A))).toBe(false);
    expect(await state.retention.listRemovals()).toEqual([{ kind: 'run', id: String(runId) }]);
    expect(logger.lines.map(({ message }) => message)).toEqual([
      'failed to remove the files of a deleted run; the next start does',
    ]);
  });
});
