import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { formatRecordLine, parseRecordLine, RecordParseError } from '../../../src/record/record-line.js';
import type { TelemetryRecord } from '../../../src/record/telemetry-record.js';
import { SMALL_SAMPLES, sampleLines } from '../../fake/sample-run.js';
import { LARGE_SAMPLES } from '../../tool/large-samples.js';

const samples = 'test/fixture/samples';

function withoutLine(record: TelemetryRecord): TelemetryRecord {
  const { line: _line, ...rest } = record;
  return rest as TelemetryRecord;
}

describe('a JSONL line', () => {
  it.each([...SMALL_SAMPLES, ...LARGE_SAMPLES])(
    'of %s is written as the engine wrote it, from its parts alone',
    (run) => {
      for (const line of sampleLines(run)) expect(formatRecordLine(withoutLine(parseRecordLine(line)))).toBe(line);
    },
  );

  it('keeps keys of the envelope that the schema does not know', () => {
    const line = readFileSync(`${samples}/parse/otel.jsonl`, 'utf8').split('\n')[0] ?? '';
    const newer = `${line.slice(0, -1)},"newer":{"a":[1]}}`;
    expect(formatRecordLine(withoutLine(parseRecordLine(newer)))).toBe(newer);
  });

  it.each([
    ['an odd severity', (line: string) => line.replace(/"severity_number":\d+/, '"severity_number":-1')],
    [
      'another order of keys',
      (line: string) => `{"event_type":"x",${line.slice(1)}`.replace(/"event_type":"v1[^,]*,/, ''),
    ],
    ['keys that are not known', (line: string) => `${line.slice(0, -1)},"newer":"\\"}{,"}`],
  ])('with %s keeps numbers in its attributes as they were spelt', (_name, change) => {
    const line = readFileSync(`${samples}/parse/otel.jsonl`, 'utf8').split('\n')[0] ?? '';
    const attributes = '{"a\\"}": "{[,\\\\" , "b":{"attributes":[-3946347639757123698,1.0]},"":1e2}';
    const changed = change(`${line.slice(0, line.indexOf('"attributes":'))}"attributes":${attributes}}`);
    expect(parseRecordLine(changed).attributes.json).toBe(attributes);
    expect(parseRecordLine(changed).attributes.value).toEqual(JSON.parse(attributes));
  });

  it.each([
    ['without a severity number', '"severity_text":"ERROR"', 17],
    ['with no severity but its text', '"severity_number":0,"severity_text":"warn"', 13],
    ['with a severity number of its own', '"severity_number":18,"severity_text":"ERROR"', 18],
    ['with a severity that nobody knows', '"severity_number":0,"severity_text":"LOUD"', 0],
  ])('%s has the number of the text, written too', (_name, severity, severityNumber) => {
    const line = readFileSync(`${samples}/parse/otel.jsonl`, 'utf8').split('\n')[0] ?? '';
    const record = parseRecordLine(line.replace('"severity_number":9,"severity_text":"INFO"', severity));
    expect(record.severityNumber).toBe(severityNumber);
    expect(formatRecordLine(record)).toContain(`"severity_number":${severityNumber},"severity_text":`);
  });

  it.each([
    ['not JSON', 'dbt 2.0', 'not JSON'],
    ['a list', '[1]', 'not a JSON object'],
    ['another type', '{"record_type":"Span"}', 'record_type must be'],
    ['a zero trace id', `{"record_type":"SpanStart","trace_id":"${'0'.repeat(32)}"}`, 'trace_id must be'],
    [
      'a time beyond int64',
      `{"record_type":"LogRecord","trace_id":"${'a'.repeat(32)}","event_type":"x","time_unix_nano":"9223372036854775808"}`,
      'time_unix_nano must be a string of digits',
    ],
  ])('that is %s is refused with the reason', (_name, line, reason) => {
    expect(() => parseRecordLine(line)).toThrow(RecordParseError);
    expect(() => parseRecordLine(line)).toThrow(reason);
  });
});
