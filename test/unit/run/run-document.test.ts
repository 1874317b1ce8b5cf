import { expect, it } from 'vitest';
import { RunState } from '../../../src/run/open-run.js';
import { parseRun } from '../../../src/run/parse-run.js';
import { formatRun } from '../../../src/run/run-document.js';
import { RUN_TRACKER_DEFAULTS } from '../../../src/run/run-tracker-config.js';
import type { RunSummary } from '../../../src/run/verdict.js';
import { fromJsonl, fromOtlp } from './logged-samples.js';

it.each([
  ['joined', fromOtlp('joined')],
  ['fail-fast', fromOtlp('fail-fast')],
  ['overlapping', fromOtlp('overlapping')],
  ['preview-120-failed', fromJsonl('preview-120-failed')],
])('a summary of the run %s reads back as it was written', (_name, records) => {
  const state = new RunState(RUN_TRACKER_DEFAULTS);
  state.add(records, 0);
  const [first] = records;
  if (first === undefined) throw new Error('no record');
  const run: RunSummary = {
    traceId: first.record.traceId,
    firstSeenUnixMs: 1,
    lastSeenUnixMs: 2,
    state: 'finished',
    logBytes: 3,
    invocations: state.judge(10_000_000).invocations,
  };
  expect(parseRun(formatRun(run))).toEqual(run);
});

it('anything else is no summary', () => {
  for (const text of ['', '{', '{}', '[]', '{"trace_id":"x"}']) expect(parseRun(text)).toBeUndefined();
});

it('holds no half of a surrogate pair: DuckDB would refuse the file, and with it a query over all runs', () => {
  const records = fromJsonl('fail-fast');
  const state = new RunState(RUN_TRACKER_DEFAULTS);
  state.add(records, 0);
  const [invocation] = state.judge(10_000_000).invocations;
  const [first] = records;
  if (first === undefined || invocation === undefined) throw new Error('no record');
  const hostile = {
    ...invocation,
    rawCommand: 'dbt build \ud800 😀',
    resource: { ...invocation.resource, attributes: { 'a\udc00': ['b\ud800'] } },
  };
  const text = formatRun({
    ...{ traceId: first.record.traceId, firstSeenUnixMs: 1, lastSeenUnixMs: 2, state: 'finished', logBytes: 3 },
    invocations: [hostile],
  });
  expect(JSON.stringify(JSON.parse(text))).not.toMatch(/\\ud[89a-f]/);
  expect(text).toContain('dbt build \ufffd 😀');
  expect(text).toContain('"a\ufffd":["b\ufffd"]');
});
