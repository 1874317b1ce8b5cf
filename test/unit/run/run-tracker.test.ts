import { appendFile, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { LoggedRecord } from '../../../src/log/record-log.js';
import { parseTraceId, type TraceId } from '../../../src/record/telemetry-record.js';
import { RunTracker } from '../../../src/run/run-tracker.js';
import { RUN_TRACKER_DEFAULTS, type RunTrackerConfig } from '../../../src/run/run-tracker-config.js';
import { fromJsonl, fromOtlp } from './logged-samples.js';
import { asTrace, RecordingListener, TrackerBench } from './tracker-bench.js';

let bench: TrackerBench;

beforeEach(async () => {
  bench = await TrackerBench.open();
});

afterEach(async () => {
  await bench.close();
});

function traceOf(records: readonly LoggedRecord[]): TraceId {
  const traceId = records[0]?.record.traceId;
  if (traceId === undefined) throw new Error('no record');
  return traceId;
}

function isRoot(record: LoggedRecord, name: 'Invocation' | 'Process'): boolean {
  return record.record.recordType === 'SpanEnd' && record.record.eventType.endsWith(`.${name}`);
}

describe('a run from its first record to its last', () => {
  const records = fromOtlp('build-clean');

  it('is reported when it starts, and when it ends with its process span', async () => {
    await bench.append(records.slice(0, 10));
    expect(bench.listener.story).toEqual(['started']);
    await bench.append(records.slice(10));
    await bench.pass(500);
    expect(bench.listener.story).toEqual(['started', 'ended 1 success', 'finished']);
    expect(await bench.tracker.isSettled(traceOf(records))).toBe(true);
  });

  it('ends also when it falls due between being judged and going to sleep', async () => {
    for (const creepMs of [0.1, 0.2, 0.3, 0.4, 0.5, 0.6]) {
      const other = await TrackerBench.open();
      other.clock.creepMs = creepMs;
      other.clock.earlyMs = 0.9;
      await other.append(records);
      for (let timers = 0; timers < 8; timers++) await other.pass(other.clock.nextTimerMs ?? 0);
      expect(other.listener.story, `creeping by ${creepMs} ms`).toEqual(['started', 'ended 1 success', 'finished']);
      await other.close();
    }
  });

  it('ends with its invocation span and 2 s of quiet where the process span never comes', async () => {
    await bench.append(records.filter((record) => !record.record.eventType.endsWith('.Process')));
    await bench.pass(1_999);
    expect(bench.listener.story).toEqual(['started']);
    await bench.pass(1);
    expect(bench.listener.story).toEqual(['started', 'ended 1 success', 'finished']);
  });

  it('is lost after 10 minutes of silence, and not before', async () => {
    await bench.append(records.slice(0, 100).filter((record) => !isRoot(record, 'Process')));
    await bench.pass(599_999);
    expect(bench.listener.story).toEqual(['started']);
    await bench.pass(1);
    expect(bench.listener.story).toEqual(['started', 'ended 1 lost', 'finished']);
  });

  it('is not lost while records keep coming', async () => {
    const open = records.filter((record) => !isRoot(record, 'Process') && !isRoot(record, 'Invocation'));
    for (let from = 0; from < open.length; from += 30) {
      await bench.append(open.slice(from, from + 30));
      await bench.pass(500_000);
    }
    expect(bench.listener.story).toEqual(['started']);
  });

  it('keeps run.json beside its log and a row in the store', async () => {
    await bench.append(records);
    await bench.pass(500);
    const traceId = traceOf(records);
    const document = JSON.parse(await readFile(join(bench.folder, 'runs', traceId, 'run.json'), 'utf8'));
    expect(document).toMatchObject({
      trace_id: traceId,
      state: 'finished',
      job: null,
      resource: { attributes: { 'service.name': 'dbt-core' } },
      steps: [
        { command: 'build', verdict: 'success', parquet_file: 'telemetry.parquet', node_counts: { success: 13 } },
      ],
    });
    const row = await bench.row(traceId);
    expect(row).toMatchObject({ state: 'finished', logBytes: document.log_bytes, parquetBytes: document.log_bytes });
    expect(await bench.tracker.find(traceId)).toMatchObject({
      state: 'finished',
      invocations: [{ verdict: 'success' }],
    });
    expect(await bench.tracker.list(10)).toHaveLength(1);
  });
});

it('does not take a jump of the wall clock for silence', async () => {
  const records = fromOtlp('build-clean').slice(0, 50);
  await bench.append(records);
  const jumpedMs = bench.clock.nowUnixMs() + 86_400_000;
  bench.clock.nowUnixMs = () => jumpedMs;
  await bench.pass(60_000);
  expect(bench.listener.story).toEqual(['started']);
});

it('waits for the last log records of an interrupted run, which alone tell that it was', async () => {
  const records = fromOtlp('interrupted');
  const processAt = records.findIndex((record) => isRoot(record, 'Process'));
  await bench.append(records.slice(0, processAt + 1));
  await bench.pass(1_000);
  await bench.append(records.slice(processAt + 1));
  await bench.pass(2_000);
  expect(bench.listener.story).toEqual(['started', 'ended 1 canceled', 'finished']);
});

it('reopens a finished run for late records and tells what changed as a revision', async () => {
  const records = fromOtlp('interrupted');
  const processAt = records.findIndex((record) => isRoot(record, 'Process'));
  await bench.append(records.slice(0, processAt + 1).filter((record) => record.record.recordType !== 'LogRecord'));
  await bench.pass(2_000);
  const traceId = traceOf(records);
  expect((await bench.row(traceId))?.state).toBe('finished');
  await bench.append(records.filter((record) => record.record.recordType === 'LogRecord'));
  expect((await bench.row(traceId))?.state).toBe('open');
  await bench.pass(10_000);
  expect(bench.listener.story).toEqual(['started', 'ended 1 canceled', 'finished', 'revised 1 canceled', 'finished']);
});

it('reads a finished run again from its log when late records come long after', async () => {
  const records = fromOtlp('build-mixed');
  const late = records.filter((record) => record.record.recordType === 'LogRecord').slice(-3);
  await bench.append(records.filter((record) => !late.includes(record)));
  await bench.pass(10_000);
  await bench.pass(10_000_000);
  expect(bench.listener.story.at(-1)).toBe('finished');
  const told = bench.listener.story.length;
  await bench.append(late);
  await bench.pass(10_000);
  expect(bench.listener.story.slice(told)).toEqual(['revised 1 error', 'finished']);
  const run = await bench.tracker.find(traceOf(records));
  expect(run?.invocations[0]?.recordCount).toBe(records.length);
});

it('ends each of two overlapping commands on its own', async () => {
  const records = fromOtlp('overlapping');
  const firstProcess = records.findIndex((record) => isRoot(record, 'Process'));
  await bench.append(records.slice(0, firstProcess + 1));
  await bench.pass(3_000);
  expect(bench.listener.story).toEqual(['started', 'ended 1 success']);
  await bench.append(records.slice(firstProcess + 1));
  await bench.pass(10_000);
  expect(bench.listener.story.at(-1)).toBe('finished');
  expect(bench.listener.story).toContain('ended 2 error');
});

describe('after a restart', () => {
  const records = fromOtlp('build-clean');

  it.each([
    ['a shutdown', false],
    ['a crash', true],
  ])('(%s) an open run is read again and goes on', async (_name, isCrash) => {
    await bench.append(records.slice(0, 50));
    await bench.restart(isCrash);
    expect(bench.listener.story).toEqual([]);
    await bench.append(records.slice(50));
    await bench.pass(500);
    expect(bench.listener.story).toEqual(['ended 1 success', 'finished']);
    expect(bench.listener.events.at(-1)?.run.invocations[0]?.recordCount).toBe(records.length);
  });

  it.each([
    ['shorter', 80],
    ['longer', 500_000],
  ])('a line that the crash tore, %s than what comes then, is no part of its log', async (_name, tornBytes) => {
    const log = join(bench.folder, 'runs', traceOf(records), 'telemetry.jsonl');
    await bench.append(records.slice(0, 50));
    await appendFile(log, `{"record_type":"${'x'.repeat(tornBytes)}`);
    await bench.restart(true);
    await bench.append(records.slice(50));
    await bench.pass(500);
    expect(bench.listener.story).toEqual(['ended 1 success', 'finished']);
    const { run } = bench.listener.events.at(-1) ?? {};
    expect(run?.invocations[0]?.recordCount).toBe(records.length);
    expect(run?.logBytes).toBe((await readFile(log)).length);
  });

  it('a finished run whose log lost its end in a power cut is read again, as far as it is there', async () => {
    const log = join(bench.folder, 'runs', traceOf(records), 'telemetry.jsonl');
    await bench.append(records);
    await bench.pass(500);
    const lines = (await readFile(log, 'utf8')).split('\n');
    await writeFile(log, `${lines.slice(0, -11).join('\n')}\n`);
    await bench.restart(true);
    await bench.pass(10_000_000);
    const { run } = bench.listener.events.at(-1) ?? {};
    expect(run?.logBytes).toBe((await readFile(log)).length);
    expect((await bench.row(traceOf(records)))?.logBytes).toBe(run?.logBytes);
  });

  it('a finished run is neither read nor told again', async () => {
    await bench.append(records);
    await bench.pass(500);
    await bench.restart();
    await bench.pass(10_000_000);
    expect(bench.listener.events).toEqual([]);
  });

  it('records are found that became durable just before the process died', async () => {
    const late = records.filter((record) => record.record.recordType === 'LogRecord').slice(-2);
    await bench.append(records.filter((record) => !late.includes(record)));
    await bench.pass(500);
    await bench.appendUnseen(late);
    await bench.restart(true);
    await bench.pass(500);
    expect(bench.listener.story).toEqual(['revised 1 success', 'finished']);
    expect(bench.listener.events.at(-1)?.run.invocations[0]?.recordCount).toBe(records.length);
  });

  it('a run is found of which no row was written', async () => {
    await bench.appendUnseen(records);
    await bench.restart(true);
    await bench.pass(500);
    expect(bench.listener.story).toEqual(['started', 'ended 1 success', 'finished']);
  });

  it('a run that is removed just when it is found is not followed any more', async () => {
    await bench.appendUnseen(records);
    const traceId = traceOf(records);
    let noteFound = () => {};
    const found = new Promise<void>((resolve) => {
      noteFound = resolve;
    });
    let answer = () => {};
    const noRow = new Promise<undefined>((resolve) => {
      answer = () => resolve(undefined);
    });
    const listener = new RecordingListener();
    const tracker = new RunTracker(RUN_TRACKER_DEFAULTS, {
      ...{ reader: bench.reader, listeners: [listener], clock: bench.clock, logger: bench.logger },
      store: {
        ...{ listUnfinished: async () => [], list: async () => [], save: async () => {} },
        find: () => {
          noteFound();
          return noRow;
        },
      },
      listTraces: async () => [traceId],
    });
    await tracker.start();
    await found;
    const isRemoved = await tracker.whileReleased([traceId], async () => {
      // Its row is gone already, its files are not.
      answer();
      await tracker.idle();
      return true;
    });
    await tracker.shutdown(new AbortController().signal);
    expect([isRemoved, tracker.openCount, listener.story]).toEqual([true, 0, []]);
  });

  it('what a listener did not take is reported again after a while', async () => {
    bench.listener.isBroken = true;
    await bench.append(records);
    await bench.pass(500);
    bench.listener.isBroken = false;
    await bench.pass(6_000);
    expect(bench.listener.story.at(-1)).toBe('finished');
    expect((await bench.row(traceOf(records)))?.parquetBytes).toBeGreaterThan(0);
    const toldCount = bench.listener.story.length;
    await bench.pass(600_000);
    expect(bench.listener.story).toHaveLength(toldCount);
  });

  it('what a listener did not take is reported again after a restart', async () => {
    bench.listener.isBroken = true;
    await bench.append(records);
    await bench.pass(500);
    expect(bench.logger.lines).toContainEqual(
      expect.objectContaining({ level: 'error', message: expect.stringContaining('notified again') }),
    );
    expect((await bench.row(traceOf(records)))?.parquetBytes).toBeNull();
    await bench.restart();
    expect(bench.listener.story).toEqual(['ended 1 success', 'finished']);
    expect((await bench.row(traceOf(records)))?.parquetBytes).toBeGreaterThan(0);
  });

  it('a run that had fallen silent is lost only after another 10 minutes', async () => {
    await bench.append(records.slice(0, 50));
    await bench.pass(500_000);
    await bench.restart();
    await bench.pass(599_000);
    expect(bench.listener.story).toEqual([]);
    await bench.pass(1_000);
    expect(bench.listener.story).toEqual(['ended 1 lost', 'finished']);
  });
});

it.each([{ maxOpenRuns: 2 }, { maxMemoryBytes: 10_000 }])(
  'keeps few runs in memory and still ends every one: %j',
  async (limit) => {
    await bench.close();
    bench = await TrackerBench.open(limit);
    const records = fromJsonl('parse');
    const half = Math.floor(records.length / 2);
    const traceIds = [1, 2, 3, 4, 5].flatMap((digit) => parseTraceId(String(digit).repeat(32)) ?? []);
    for (const traceId of traceIds) await bench.append(asTrace(records.slice(0, half), traceId));
    await bench.pass(2_000);
    for (const traceId of traceIds) await bench.append(asTrace(records.slice(half), traceId));
    await bench.pass(10_000);
    expect(bench.listener.story.filter((line) => line === 'started')).toHaveLength(5);
    expect(bench.listener.story.filter((line) => line === 'ended 1 success')).toHaveLength(5);
    expect(bench.listener.story.filter((line) => line === 'finished')).toHaveLength(5);
    for (const traceId of traceIds) {
      expect((await bench.tracker.find(traceId))?.invocations[0]?.recordCount).toBe(records.length);
    }
  },
);

describe('a run that has ended', () => {
  const RECORDS = fromJsonl('parse');
  const LATE = RECORDS.slice(10, 11);
  const IN_TIME = RECORDS.filter((record) => !LATE.includes(record));
  const [FIRST, SECOND, THIRD] = ['1', '2', '3'].map((digit) => digit.repeat(32)) as [TraceId, TraceId, TraceId];

  async function openWith(limit: Partial<RunTrackerConfig>): Promise<void> {
    await bench.close();
    bench = await TrackerBench.open(limit);
    await bench.append(asTrace(IN_TIME, FIRST));
    await bench.pass(10_000);
    expect(bench.listener.story).toEqual(['started', 'ended 1 success', 'finished']);
  }

  it.each([
    { maxSettledBytes: 2 ** 20, readTraceIds: [] },
    { maxSettledBytes: 1, readTraceIds: [FIRST] },
  ])('is dropped from memory before others, and is read again for what comes late: %j', async (limit) => {
    const { readTraceIds, ...bounds } = limit;
    await openWith({ maxMemoryBytes: 200_000, ...bounds });
    // So much that memory is checked.
    await bench.append(asTrace(fromJsonl('build-clean'), SECOND));
    await bench.append(asTrace(LATE, FIRST));
    await bench.pass(10_000);
    expect(bench.readTraceIds).toEqual(readTraceIds);
    expect(bench.listener.story.at(-1)).toBe('finished');
    expect((await bench.tracker.find(FIRST))?.invocations[0]?.recordCount).toBe(RECORDS.length);
  });

  it('was dropped from memory, goes on with what comes late, and is not dropped again for having ended once', async () => {
    await openWith({ maxOpenRuns: 1 });
    await bench.append(asTrace(RECORDS.slice(0, 20), SECOND));
    await bench.append(asTrace(LATE, FIRST));
    await bench.append(asTrace(RECORDS.slice(0, 20), THIRD));
    expect(bench.tracker.openCount).toBe(3);
  });
});

describe('a run that was dropped from memory', () => {
  const RECORDS = fromJsonl('parse');
  const HALF = RECORDS.slice(0, 20);
  const [FIRST, SECOND] = ['1'.repeat(32), '2'.repeat(32)] as [TraceId, TraceId];
  beforeEach(async () => {
    await bench.close();
    bench = await TrackerBench.open({ maxOpenRuns: 1 });
    await bench.append(asTrace(HALF, FIRST));
    await bench.pass(300_000);
    await bench.append(asTrace(HALF, SECOND));
  });

  it('ends when its silence is over, without its log being read again', async () => {
    await bench.pass(299_000);
    expect(bench.listener.story).toEqual(['started', 'started']);
    await bench.pass(1_000);
    expect(bench.listener.story).toEqual(['started', 'started', 'ended 1 lost', 'finished']);
    expect(bench.readTraceIds).toEqual([]);
    await bench.pass(300_000);
    const [first, second] = bench.listener.events.filter(({ type }) => type === 'finished').map(({ run }) => run);
    expect(first?.traceId).toBe(FIRST);
    expect(first?.invocations).toEqual(second?.invocations);
    expect(first?.logBytes).toBe(second?.logBytes);
  });

  it('is read again when more of it comes', async () => {
    await bench.pass(299_000);
    await bench.append(asTrace(RECORDS.slice(20), FIRST));
    await bench.pass(10_000);
    expect(bench.readTraceIds).toEqual([FIRST]);
    expect(bench.listener.story).toEqual(['started', 'started', 'ended 1 success', 'finished']);
    expect((await bench.tracker.find(FIRST))?.invocations[0]?.recordCount).toBe(RECORDS.length);
  });

  it('is reopened by what comes after its end', async () => {
    await bench.pass(300_000);
    await bench.append(asTrace(RECORDS.slice(20), FIRST));
    await bench.pass(10_000);
    expect(bench.listener.story.slice(2)).toEqual(['ended 1 lost', 'finished', 'revised 1 success', 'finished']);
  });
});
