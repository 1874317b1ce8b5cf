import { expect, test } from 'vitest';
import type { LoggedRecord } from '../../../../src/log/record-log.js';
import { UNKNOWN_RESOURCE } from '../../../../src/record/attributes.js';
import { toUnixMs } from '../../../../src/record/telemetry-record.js';
import { RunProgress } from '../../../../src/run/measures/run-progress.js';
import { sampleRecords } from '../../../fake/sample-run.js';

const logged = (sample: string): readonly LoggedRecord[] =>
  sampleRecords(sample).map((record, offset) => ({
    record,
    resource: UNKNOWN_RESOURCE,
    offset,
    endOffset: offset + 1,
  }));

const isOf = (event: string, type: string) => (one: LoggedRecord) =>
  one.record.recordType === type && one.record.eventType.endsWith(`.${event}`);
const isDone = isOf('NodeProcessed', 'SpanEnd');
/** 41 s after the first node of `build-mixed-fusion` began. */
const NOW_MS = 1_795_221_805_246 + 41_000;

/** A sample's records as they come over OTLP: each span's start is written with its end. */
function overOtlp(records: readonly LoggedRecord[]): readonly LoggedRecord[] {
  const starts = new Map(records.filter(isStart).map((one) => [spanIdOf(one), one]));
  return records.flatMap((one) => {
    if (one.record.recordType === 'LogRecord') return [one];
    const start = starts.get(spanIdOf(one));
    return isStart(one) ? [] : start === undefined ? [one] : [start, one];
  });
}

const textOf = (record: LoggedRecord['record'], name: string) => record.attributes.text(name);
const isRunning = (one: LoggedRecord) =>
  isOf('NodeEvaluated', 'SpanStart')(one) && textOf(one.record, 'phase') === 'EXECUTION_PHASE_RUN';
const parentOf = ({ record }: LoggedRecord) => ('parentSpanId' in record ? record.parentSpanId : null);
const isStart = ({ record }: LoggedRecord) => record.recordType === 'SpanStart';
const spanIdOf = ({ record }: LoggedRecord) => record.spanId;

test('counts nodes out of those that there will be, names what runs, and says how long it takes at that pace', () => {
  const records = logged('build-mixed-fusion');
  const progress = new RunProgress();
  expect(progress.view(NOW_MS)).toMatchObject({
    ...{ phase: null, phaseForMs: null, parsedCount: 0, doneCount: 0, totalCount: null, failedCount: 0 },
    ...{ failed: [], running: [], lastEnded: null, hasStarts: false, nodesForMs: null, leftMs: null },
  });
  const seventh = records.map((record, index) => (isDone(record) ? index : -1)).filter((index) => index >= 0)[6] ?? 0;
  progress.add(records.slice(0, seventh + 1));
  const view = progress.view(NOW_MS);
  expect(view).toMatchObject({ phase: 'RUN', doneCount: 7, totalCount: 21, hasStarts: true });
  expect(view.phaseForMs).toBeGreaterThan(41_000);
  expect(view.running.length).toBeGreaterThan(0);
  expect(view.running[0]?.label).toMatch(/^\w+ \w+/);
  expect(view.leftMs).toBeGreaterThan(80_000);
  expect(view.leftMs).toBeLessThan(84_000);
  progress.add(records.slice(seventh + 1));
  expect(progress.view(NOW_MS)).toMatchObject({
    doneCount: 21,
    totalCount: 21,
    failedCount: 3,
    counts: { error: 1, failed: 2, success: 13, skipped: 4, warned: 1 },
    running: [],
    leftMs: 0,
  });
  expect(progress.view(NOW_MS).failed.map(({ label }) => label)).toContain('model broken');
});

test('says which files were parsed before the first node', () => {
  const records = logged('build-mixed-fusion');
  const progress = new RunProgress();
  const parsed = records.findIndex(isOf('AssetParsed', 'SpanEnd'));
  const files = records.slice(0, parsed + 1);
  progress.add(files);
  const parsing = files.map(({ record }) => record).find((one) => textOf(one, 'phase')?.endsWith('_PARSE'));
  const startMs = parsing?.recordType === 'SpanStart' ? toUnixMs(parsing.startTimeUnixNano) : 0;
  expect(progress.view(startMs + 85_000)).toMatchObject({
    ...{ phase: 'PARSE', phaseForMs: 85_000, parsedCount: 1, doneCount: 0, totalCount: null },
  });
});

test('tells what is worked on from what waits for a connection', () => {
  const records = logged('big-build');
  const progress = new RunProgress();
  const nodes = new Set(records.filter(isRunning).map(spanIdOf));
  const isWait = (type: string) => (one: LoggedRecord) =>
    isOf('ConnectionLimitWait', type)(one) && nodes.has(parentOf(one));
  const begun = records.findIndex(isWait('SpanStart'));
  progress.add(records.slice(0, begun + 1));
  const { waitingCount, running } = progress.view(NOW_MS);
  expect(waitingCount).toBe(1);
  const ended = records.findIndex(isWait('SpanEnd'));
  progress.add(records.slice(begun + 1, ended + 1));
  expect(progress.view(NOW_MS).running.length + progress.view(NOW_MS).waitingCount).toBeGreaterThan(running.length);
});

test('knows what is done and what ended last of telemetry that tells of spans when they are over', () => {
  const progress = new RunProgress();
  const records = overOtlp(logged('build-mixed-fusion'));
  progress.add(records.slice(0, Math.ceil(records.length / 2)));
  const view = progress.view(NOW_MS);
  expect(view).toMatchObject({ totalCount: null, running: [], leftMs: null, hasStarts: false, phase: 'RUN' });
  expect(view.doneCount).toBeGreaterThan(0);
  expect(view.lastEnded?.agoMs).toBeGreaterThan(0);
});

test('begins anew with the next command of the trace', () => {
  const progress = new RunProgress();
  progress.add(logged('build-mixed-fusion'));
  expect(progress.view(NOW_MS).doneCount).toBe(21);
  progress.add(logged('build-clean').slice(0, 4));
  expect(progress.view(NOW_MS)).toMatchObject({ doneCount: 0, failedCount: 0, totalCount: null });
});
