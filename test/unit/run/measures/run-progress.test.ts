import { expect, test } from 'vitest';
import type { LoggedRecord } from '../../../../src/log/record-log.js';
import { UNKNOWN_RESOURCE } from '../../../../src/record/attributes.js';
import { RunProgress } from '../../../../src/run/measures/run-progress.js';
import { sampleRecords } from '../../../fake/sample-run.js';

const logged = (sample: string): readonly LoggedRecord[] =>
  sampleRecords(sample).map((record, offset) => ({
    record,
    resource: UNKNOWN_RESOURCE,
    offset,
    endOffset: offset + 1,
  }));

const isDone = ({ record }: LoggedRecord) =>
  record.recordType === 'SpanEnd' && record.eventType.endsWith('.NodeProcessed');
/** 41 s after the first node of `build-mixed-fusion` began. */
const NOW_MS = 1_795_221_805_246 + 41_000;

test('counts nodes out of those that there will be, names what runs, and says how long it takes at that pace', () => {
  const records = logged('build-mixed-fusion');
  const progress = new RunProgress();
  expect(progress.view(NOW_MS)).toEqual({ doneCount: 0, totalCount: null, failedCount: 0, running: [], leftMs: null });
  const seventh = records.map((record, index) => (isDone(record) ? index : -1)).filter((index) => index >= 0)[6] ?? 0;
  progress.add(records.slice(0, seventh + 1));
  const view = progress.view(NOW_MS);
  expect(view).toMatchObject({ doneCount: 7, totalCount: 21 });
  expect(view.running.length).toBeGreaterThan(0);
  expect(view.leftMs).toBeGreaterThan(80_000);
  expect(view.leftMs).toBeLessThan(84_000);
  progress.add(records.slice(seventh + 1));
  expect(progress.view(NOW_MS)).toMatchObject({
    doneCount: 21,
    totalCount: 21,
    failedCount: 3,
    running: [],
    leftMs: 0,
  });
});

test('knows only what is done of telemetry that tells of spans when they are over', () => {
  const progress = new RunProgress();
  const ends = logged('build-mixed-fusion').filter(({ record }) => record.recordType !== 'SpanStart');
  progress.add(ends.slice(0, Math.ceil(ends.length / 2)));
  const view = progress.view(NOW_MS);
  expect(view).toMatchObject({ totalCount: null, running: [], leftMs: null });
  expect(view.doneCount).toBeGreaterThan(0);
});
