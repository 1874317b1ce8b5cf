import { describe, expect, it } from 'vitest';
import { casesOf, recordedErrors } from '../../../tool/error-runs.js';
import { findCauses, markersShown } from '../../../tool/error-texts.js';

describe.each(['duckdb', 'postgres'] as const)('errors that the engine reported of %s', (database) => {
  const lines = recordedErrors(database);

  it('show their cause when they are redacted', () => {
    expect(findCauses(lines, database, casesOf(database))).toEqual([]);
  });

  it.each(['literals', 'statements'] as const)('show no value of the project at level %s', (level) => {
    expect(markersShown(lines, level)).toEqual([]);
  });
});

it('are at least sixty', () => {
  expect(casesOf('duckdb').length + casesOf('postgres').length).toBeGreaterThanOrEqual(60);
});
