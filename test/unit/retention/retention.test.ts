import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { parseTraceId, type TraceId } from '../../../src/record/telemetry-record.js';
import { Removals } from '../../../src/retention/removals.js';
import { Retention } from '../../../src/retention/sweep.js';
import { TelemetryFolder } from '../../../src/retention/telemetry-storage.js';
import { FIRST_ACCOUNT_ID } from '../../../src/storage/account-store.js';
import type { Removal } from '../../../src/storage/retention-store.js';
import type { State } from '../../../src/storage/state.js';
import { FakeClock } from '../../fake/fake-clock.js';
import { openFreshState } from '../../fake/fresh-state.js';
import { noteOf, rowOf } from '../../fake/noted-run.js';
import { RecordingLogger } from '../../fake/recording-logger.js';

const TRACE = parseTraceId('a'.repeat(32)) as TraceId;

let folder: string;
let state: State;
let logger: RecordingLogger;
let bucketFailures: number;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'run-bridge-retention-'));
  state = await openFreshState(join(folder, 'state.db'));
  logger = new RecordingLogger();
  bucketFailures = 0;
});
afterEach(async () => {
  await state.close();
  await rm(folder, { recursive: true, force: true });
});

const runFolder = () => join(folder, 'runs', TRACE);

function removals(): Removals {
  const openArtifacts = async () => ({
    removeRun: async () => {
      if (bucketFailures-- > 0) throw new Error('the bucket is away');
      return { count: 0, sizeBytes: 0 };
    },
  });
  return new Removals({ store: state.retention, storage: new TelemetryFolder(folder), openArtifacts });
}

/** A run whose rows are gone, and whose files are not. */
async function removeRows(): Promise<readonly Removal[]> {
  mkdirSync(runFolder(), { recursive: true });
  writeFileSync(join(runFolder(), 'telemetry.jsonl'), 'old');
  await state.runs.save([rowOf(TRACE, 1_000)]);
  await state.invocations.note([noteOf(TRACE, 1_000)], 1_000);
  const [runId = 0] = await state.traces.runsOf(FIRST_ACCOUNT_ID, TRACE);
  const group = await state.retention.groupOf(runId, []);
  return (group && (await state.retention.removeRuns(group, [], 1))) ?? [];
}

describe('what was left half removed', () => {
  it('is out of the way when a start has resolved, and gone when it was ended', async () => {
    await removeRows();
    const retention = new Retention({ kinds: [], removals: removals(), clock: new FakeClock(), logger });
    const said = logger.next(({ message }) => message === 'finished interrupted removals');
    await retention.start();
    expect(existsSync(runFolder())).toBe(false);
    expect((await said).fields).toEqual({ count: 2 });
    await retention.shutdown();
    expect(existsSync(join(folder, 'removed', TRACE))).toBe(false);
    expect(await state.retention.listRemovals()).toEqual([]);
  });

  it('takes nothing along that came under its name after it was out of the way', async () => {
    await removals().hide(await removeRows());
    // The program goes on, more of the run comes, and then it is killed before the note is gone.
    mkdirSync(runFolder());
    writeFileSync(join(runFolder(), 'telemetry.jsonl'), 'new');
    await removals().hideLeftovers();
    expect(existsSync(runFolder())).toBe(true);
    for (const removal of await removals().left()) await removals().end(removal);
    expect(existsSync(runFolder())).toBe(true);
    expect(await state.retention.listRemovals()).toEqual([]);
  });

  it('stays noted while a bucket is away, and while there is none', async () => {
    await removals().hide(await removeRows());
    bucketFailures = 1;
    await expect(
      (async () => {
        for (const removal of await removals().left()) await removals().end(removal);
      })(),
    ).rejects.toThrow('away');
    expect(await state.retention.listRemovals()).toContainEqual({ kind: 'run', id: expect.any(String) });
    expect(await removals().end({ kind: 'object', id: 'runs/x' })).toBe(false);
  });
});
