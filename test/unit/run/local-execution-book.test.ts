import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { parseTraceId, type TraceId } from '../../../src/record/ids.js';
import { LocalExecutionBook, TELLER_LEASE_MS } from '../../../src/run/local-execution-book.js';
import { openSqliteState } from '../../../src/store/open-sqlite-state.js';
import type { State } from '../../../src/store/state.js';
import { stepStart } from '../../contract/execution-book.contract.js';
import { FakeClock } from '../../fake/fake-clock.js';
import { RecordingLogger } from '../../fake/recording-logger.js';
import { commandNote } from '../../fake/webhook-facts.js';
import { until } from '../../tool/until.js';

const DAY_MS = 86_400_000;
let folder: string;
let clock: FakeClock;
let logger: RecordingLogger;
let changed: TraceId[];
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'run-bridge-book-'));
  clock = new FakeClock();
  logger = new RecordingLogger();
  changed = [];
});
afterEach(() => rm(folder, { recursive: true, force: true }));

async function withBook(body: (book: LocalExecutionBook, state: State) => Promise<void>): Promise<void> {
  const state = await openSqliteState(join(folder, 'state.db'));
  const listeners = [{ onStepChanged: (traceIds: readonly TraceId[]) => void changed.push(...traceIds) }];
  const book = new LocalExecutionBook({ store: state.executions, runs: state.runs, listeners, clock, logger });
  await book.start();
  try {
    await body(book, state);
  } finally {
    await book.shutdown();
    await state.close();
  }
}

describe('the book of a data folder', () => {
  const TRACE = parseTraceId('0af7651916cd43dd8448eb211c80319c') as TraceId;

  it('tells at once that a trace belongs to a step, and that the step ended', () =>
    withBook(async (book) => {
      await book.begin(stepStart('a', {}));
      await book.attach('a', TRACE);
      expect(changed).toEqual([TRACE]);
      await book.end('a', { kind: 'exited', exitCode: 0 }, 2_000);
      expect(changed).toEqual([TRACE, TRACE]);
    }));

  it('tells at once that a step has begun whose telemetry is there already', () =>
    withBook(async (book, state) => {
      const note = commandNote(1, { verdict: null, isSaved: false, namedStepId: 'a' });
      await state.invocations.note([note], 1_000);
      await book.begin(stepStart('a', {}));
      expect(changed).toEqual([note.traceId]);
    }));

  it('closes at the start what a process left open that died, as of its last sign of life', async () => {
    await withBook(async (book, state) => {
      await book.begin(stepStart('a', {}));
      await book.begin(stepStart('b', {}));
      await book.attach('b', TRACE);
      const row = { firstSeenUnixMs: 1_100, state: 'open', logBytes: 5, summary: '', parquetBytes: null } as const;
      await state.runs.save([{ ...row, traceId: TRACE, lastSeenUnixMs: 7_000 }]);
    });
    await withBook(async (_, { executions }) => {
      expect(await executions.listRunning()).toEqual([]);
      expect(await executions.findStep('a')).toMatchObject({ ending: { kind: 'unknown' }, endedUnixMs: 1_000 });
      expect(await executions.findStep('b')).toMatchObject({ endedUnixMs: 7_000, run: { state: 'finished' } });
    });
  });

  it('leaves what programs elsewhere run open over a restart, until they are silent', async () => {
    await withBook((book) => book.begin(stepStart('a', {}), 'remote').then(() => undefined));
    await withBook(async (book, { executions }) => {
      clock.advance(TELLER_LEASE_MS - 60_000);
      await swept();
      await book.begin(stepStart('a', {}), 'remote');
      clock.advance(TELLER_LEASE_MS - 60_000);
      await swept();
      expect((await executions.findStep('a'))?.ending).toBeNull();
      clock.advance(60_000);
      await swept();
      expect((await executions.findStep('a'))?.ending).toEqual({ kind: 'unknown' });
      // It was cut off from the bridge, not dead.
      await book.end('a', { kind: 'exited', exitCode: 1 }, 9_000);
      expect(await executions.findStep('a')).toMatchObject({ ending: { exitCode: 1 }, endedUnixMs: 9_000 });
    });
  });

  it('finishes a run that nobody finished a day after its last step', () =>
    withBook(async (book, { executions }) => {
      const startedUnixMs = clock.nowUnixMs();
      await book.begin(stepStart('a', { runKey: 'night', startedUnixMs }));
      await book.begin(stepStart('b', { runKey: 'long', startedUnixMs }));
      await book.end('a', { kind: 'exited', exitCode: 0 }, startedUnixMs);
      for (const forMs of [DAY_MS, 60_000]) {
        clock.advance(forMs);
        await swept();
      }
      expect((await executions.findStep('a'))?.run.state).toBe('finished');
      expect((await executions.findStep('b'))?.run.state).toBe('open');
    }));
});

/** Resolves when the look at open steps that was due is done: the next one is planned. */
function swept(): Promise<boolean> {
  return until('a look at open steps', () => clock.nextTimerMs !== undefined);
}
