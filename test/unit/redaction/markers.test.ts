import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { DEFAULT_MAPPING_SWITCHES } from '../../../src/config/mapping-options.js';
import type { LoggedRecord } from '../../../src/log/record-log.js';
import type { RedactionLevel } from '../../../src/redaction/known-names.js';
import { mapRun } from '../export/mapping/mapped-run.js';
import { asOtlp, readLog } from '../export/mapping/read-sample.js';

/** What the project of test/fixture/redaction has in its strings, numbers and comments. */
const MARKERS = /zq[a-z]+\d{3}|7700\d{5}|7700\.\d{5}|7\.7\d{6}e8|7700-\d\d-\d\d|0x7700\d?/gi;
const log = readLog('redaction/otel.jsonl');
const runs = [...new Set(log.map((logged) => logged.record.traceId))].map((traceId) =>
  log.filter((logged) => logged.record.traceId === traceId),
);

/** Every text that an exporter could write of a run. */
function exported(records: readonly LoggedRecord[], redaction: RedactionLevel, isLifted = true): string {
  const switches = { ...DEFAULT_MAPPING_SWITCHES, attributes: isLifted };
  const { spans, logs } = mapRun(records, { redaction, switches }, []);
  const texts = [
    ...spans.map(({ name, attributes, events, links, status }) => ({ name, attributes, events, links, status })),
    ...logs.map(({ body, attributes, eventName }) => ({ body, attributes, eventName })),
  ];
  return JSON.stringify(texts);
}

function markersIn(text: string): readonly string[] {
  return [...new Set(text.toLowerCase().match(MARKERS))].sort();
}

describe('of a run whose every literal, number and comment is marked', () => {
  it.each<RedactionLevel>(['literals', 'statements'])('nothing marked is exported at level %s', (level) => {
    for (const run of runs) {
      expect(markersIn(exported(run, level))).toEqual([]);
      expect(markersIn(exported(asOtlp(run), level))).toEqual([]);
      expect(markersIn(exported(run, level, false))).toEqual([]);
    }
  });

  it('everything is exported at level off', () => {
    const written = markersIn(readFileSync('test/fixture/redaction/otel.jsonl', 'utf8'));
    const found = markersIn(runs.map((run) => exported(run, 'off')).join('\n'));
    expect(found).toEqual(written);
    expect(found.length).toBeGreaterThan(90);
  });

  it('nothing depends on the records that came before', () => {
    // Each record alone: names of the project are unknown then, and so is the database.
    for (const record of log) expect(markersIn(exported([record], 'literals'))).toEqual([]);
  });

  it('the statements stay readable at level literals', () => {
    const text = exported(runs[0] ?? [], 'literals');
    expect(text).toContain("Could not convert string '?' to INT32");
    expect(text).toContain('select cast(? as integer) as n, ? as s from');
    expect(text).toContain('Referenced column \\"nonexistent_column\\" not found in FROM clause!');
  });

  it('no SQL is exported at level statements', () => {
    const text = exported(runs[0] ?? [], 'statements');
    expect(/"[^"]*\bselect\b[^"]*\bfrom\b/i.exec(text)).toBeNull();
    expect(text).not.toContain('nonexistent_column');
    expect(text).toContain('"sql_hash":');
    expect(text).toContain('"run_bridge.sql.sha256":');
    expect(text).toContain('Conversion Error: Could not convert string');
  });
});
