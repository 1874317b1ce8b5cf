import { describe, expect, it } from 'vitest';
import { RunState } from '../../../src/run/open-run.js';
import { RUN_TRACKER_DEFAULTS } from '../../../src/run/run-tracker-config.js';
import { casesOf, recordedErrors, traceOfCase } from '../../tool/error-runs.js';
import { findCauses, markersShown } from '../../tool/error-texts.js';
import { mapRun } from '../export/mapping/mapped-run.js';
import { loggedLines } from '../export/mapping/read-sample.js';

/** Long after every command has ended. */
const LONG_AFTER_MS = 10_000_000;

describe.each(['duckdb', 'postgres'] as const)('errors that the engine reported of %s', (database) => {
  const lines = recordedErrors(database);

  it('show their cause when they are redacted', () => {
    expect(findCauses(lines, database, casesOf(database))).toEqual([]);
  });

  it.each(['literals', 'statements'] as const)('show no value of the project at level %s', (level) => {
    expect(markersShown(lines, level)).toEqual([]);
  });
});

it('are errors also where the database ended a statement for its time, which the engine calls canceled', () => {
  const log = loggedLines(recordedErrors('postgres'));
  const state = new RunState(RUN_TRACKER_DEFAULTS);
  const traceId = traceOfCase({ name: 'timeout' });
  state.add(
    log.filter(({ record }) => record.traceId === traceId),
    0,
  );
  expect(state.judge(LONG_AFTER_MS).invocations).toMatchObject([{ verdict: 'error', nodeCounts: { canceled: 0 } }]);
  const { spans } = mapRun(log);
  const timedOut = spans.filter(({ attributes }) => attributes.query_outcome === 'QUERY_OUTCOME_CANCELED');
  expect(timedOut.map(({ status, attributes }) => [status.message, attributes['error.type']])).toEqual([
    [expect.stringContaining('canceling statement due to statement timeout'), 'Cancelled'],
  ]);
});

it('are at least sixty', () => {
  expect(casesOf('duckdb').length + casesOf('postgres').length).toBeGreaterThanOrEqual(60);
});
