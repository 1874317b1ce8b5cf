import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { systemClock } from '../../../src/core/clock.js';
import { STEP_ATTRIBUTE } from '../../../src/record/attributes.js';
import { parseTraceId, type TraceId, toUnixMs, type UnixNano } from '../../../src/record/telemetry-record.js';
import { InvocationNotes } from '../../../src/run/invocation-notes.js';
import { parseRun } from '../../../src/run/parse-run.js';
import { formatRun } from '../../../src/run/run-document.js';
import type { RunListener } from '../../../src/run/run-event.js';
import { ScopeFinder } from '../../../src/run/scope-finder.js';
import type { RunSummary } from '../../../src/run/verdict.js';
import type { TraceNote } from '../../../src/storage/invocation-store.js';
import { openPostgresState } from '../../../src/storage/postgres-state.js';
import type { State } from '../../../src/storage/state.js';
import { FakeClock } from '../../fake/fake-clock.js';
import { openFreshState } from '../../fake/fresh-state.js';
import { RecordingLogger } from '../../fake/recording-logger.js';
import { TestDatabase } from '../../tool/test-database.js';
import { until } from '../../tool/until.js';

const PLACES = new ScopeFinder({ jobs: [], environments: [], projects: [] });

let folder: string;
let state: State;
let noted: (readonly TraceNote[])[];
const clock = new FakeClock();
beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'run-bridge-notes-'));
  state = await openFreshState(join(folder, 'state.db'));
  noted = [];
});
afterEach(async () => {
  await state.close();
  rmSync(folder, { recursive: true, force: true });
});

function notes(files: RunListener | null = null): InvocationNotes {
  const store = {
    note: async (some: readonly TraceNote[], nowUnixMs: number) => {
      noted.push(some);
      await state.invocations.note(some, nowUnixMs);
    },
    listUnnoted: (limit: number) => state.invocations.listUnnoted(limit),
    setAside: (traceIds: readonly TraceId[]) => state.invocations.setAside(traceIds),
    countSetAside: () => state.invocations.countSetAside(),
    listSetAside: (limit: number) => state.invocations.listSetAside(limit),
  };
  return new InvocationNotes({ store, files, scopes: PLACES, clock, logger: new RecordingLogger() });
}

/** A run that is over, as its document says. */
function run(): RunSummary {
  const text = readFileSync(join(import.meta.dirname, 'finished-run.json'), 'utf8');
  const found = parseRun(text);
  if (found === undefined) throw new Error('the document is none of a run');
  return found;
}

async function statuses(): Promise<number[]> {
  const query = { orderBy: 'id', isDescending: false, limit: 100, offset: 0 } as const;
  return (await state.catalog.listRuns(10_001, query)).items.map(({ status }) => status);
}

it('notes a run that is over at once in one write, its beginning with it', async () => {
  const listener = notes();
  const finished = run();
  await listener.onRunEvent({ type: 'started', run: { ...finished, state: 'open' } });
  await listener.onRunEvent({ type: 'finished', run: finished });
  expect(noted).toHaveLength(1);
  expect(await statuses()).toEqual([10]);
  await listener.shutdown();
});

it('notes a beginning after a moment', async () => {
  const listener = notes();
  const invocations = run().invocations.map((one) => ({ ...one, verdict: null }));
  await listener.onRunEvent({ type: 'started', run: { ...run(), state: 'open', invocations } });
  expect(await statuses()).toEqual([]);
  clock.advance(50);
  await until('the note', async () => (await statuses()).length === 1);
  expect(await statuses()).toEqual([3]);
  await listener.shutdown();
});

it.each([
  ['nobody has told of yet', 'late', 'late'],
  ['another account has', '10002/late', null],
  ['has a name that none can have', 'x'.repeat(201), null],
])('notes which step the telemetry names: one that %s', async (_which, stepId, expected) => {
  const listener = notes();
  const invocations = run().invocations.map(({ resource, ...one }) => ({
    ...{ ...one, verdict: null },
    resource: { ...resource, attributes: { ...resource.attributes, [STEP_ATTRIBUTE]: stepId } },
  }));
  await listener.onRunEvent({ type: 'started', run: { ...run(), state: 'open', invocations } });
  await listener.flush();
  const said = noted.flat().flatMap((trace) => trace.invocations.map((one) => [one.stepId, one.namedStepId]));
  expect(said).toEqual([[null, expected]]);
  await listener.shutdown();
});

it('notes an end only once the files of the run were written', async () => {
  let isFull = true;
  const listener = notes({
    onRunEvent: async () => {
      if (isFull) throw new Error('disk full');
    },
  });
  await expect(listener.onRunEvent({ type: 'finished', run: run() })).rejects.toThrow('disk full');
  expect(await statuses()).toEqual([]);
  isFull = false;
  await listener.onRunEvent({ type: 'finished', run: run() });
  expect(await statuses()).toEqual([10]);
  await listener.shutdown();
});

it('notes what waits when the program ends', async () => {
  const listener = notes();
  await listener.onRunEvent({ type: 'started', run: run() });
  await listener.shutdown();
  expect(await statuses()).toHaveLength(1);
});

it('finds the traces of before after a start, one that cannot be read as well, and looks at them once', async () => {
  const summary = run();
  const times = { firstSeenUnixMs: 1, lastSeenUnixMs: 1, state: 'finished', logBytes: 7, parquetBytes: 7 } as const;
  await state.runs.save([
    { traceId: summary.traceId, ...times, summary: formatRun(summary) },
    { ...times, traceId: `${summary.traceId.slice(0, -1)}f` as typeof summary.traceId, summary: '?' },
  ]);
  const listener = notes();
  await listener.start();
  await until('the note', async () => (await state.invocations.listUnnoted(1)).length === 0);
  expect(await statuses()).toEqual([10]);
  await listener.shutdown();
  expect(noted).toHaveLength(1);
});

it('holds nothing up for a run that the database can never keep, and counts it', async () => {
  const database = await TestDatabase.create();
  const postgres = await openPostgresState(database.url, systemClock);
  const logger = new RecordingLogger();
  const listener = new InvocationNotes({ store: postgres.invocations, files: null, scopes: PLACES, clock, logger });
  try {
    const [whole, late, impossible] = [run(), withTrace(run(), 1), withTrace(run(), 2)];
    const [command] = late.invocations;
    if (command === undefined) throw new Error('the document has no command');
    const runs = [
      whole,
      { ...late, invocations: [{ ...command, endTimeUnixNano: (10n ** 30n) as UnixNano }] },
      { ...impossible, invocations: [{ ...command, index: 2 ** 40 }] },
    ];
    await postgres.runs.save(
      runs.map(({ traceId }) => ({
        ...{ traceId, firstSeenUnixMs: 1, lastSeenUnixMs: 2, state: 'finished' as const, logBytes: 7 },
        ...{ summary: '{}', parquetBytes: 7 },
      })),
    );
    await Promise.all(runs.map((one) => listener.onRunEvent({ type: 'finished', run: one })));
    const query = { orderBy: 'id', isDescending: false, limit: 100, offset: 0 } as const;
    const { items } = await postgres.catalog.listRuns(10_001, query);
    expect(items.map(({ status, finishedUnixMs }) => [status, finishedUnixMs])).toEqual([
      [10, toUnixMs(whole.invocations[0]?.endTimeUnixNano ?? (0n as UnixNano))],
      [10, 8.64e15 - 1],
    ]);
    expect(listener.setAsideCount).toBe(1);
    expect(listener.health()).toEqual({ ready: true, details: { setAsideCount: 1 } });
    expect(await listener.listSetAside(10_001)).toMatchObject([{ traceId: impossible.traceId, command: null }]);
    expect(await listener.listSetAside(10_002)).toEqual([]);
    expect(await postgres.invocations.countSetAside()).toBe(1);
    expect(await postgres.invocations.listUnnoted(9)).toEqual([]);
    expect(logger.lines.map(({ message }) => message)).toEqual([
      'the database cannot store the details of a run; only its summary was saved',
      'a run cannot be stored in the database; it was skipped',
    ]);
  } finally {
    await postgres.close();
    await database.drop();
  }
});

function withTrace(one: RunSummary, number: number): RunSummary {
  const traceId = parseTraceId(`${number}`.padStart(32, 'a'));
  if (traceId === undefined) throw new Error(`${number} makes no trace id`);
  return { ...one, traceId };
}
