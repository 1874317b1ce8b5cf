import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import { describe, expect, it } from 'vitest';
import { MAPPING_SWITCHES, type MappingSwitch, mappingSwitchesFrom } from '../../../../src/config/mapping-options.js';
import type { RedactionLevel } from '../../../../src/redaction/known-names.js';
import { SMALL_SAMPLES, sampleFolder } from '../../../fake/sample-run.js';
import { LARGE_SAMPLES_OF_COSTLY_CHECKS } from '../../../tool/large-samples.js';
import { mapBlankLines, mapLines } from './mapped-bytes.js';

const logOf = (name: string) => readFileSync(join(sampleFolder(name), 'otel.jsonl'));
const SAMPLES = SMALL_SAMPLES.map((name) => [name, logOf(name)] as const);
const MARKED = readFileSync('test/fixture/redaction/otel.jsonl');
const LEVELS: readonly RedactionLevel[] = ['literals', 'statements', 'off'];
const SWITCHES = Object.keys(MAPPING_SWITCHES) as MappingSwitch[];

/** The same log as OTLP would bring it: no starts. */
function withoutStarts(log: Buffer): Buffer {
  const lines = log.toString().split('\n');
  return Buffer.from(lines.filter((line) => !line.startsWith('{"record_type":"SpanStart"')).join('\n'));
}

describe.each([...SAMPLES, ['marked values', MARKED] as const])('the log of %s', (_name, log) => {
  it.each(LEVELS)('gives the same bytes whether attributes are copied or put together at level %s', (redaction) => {
    expect(mapLines(log, { redaction })).toEqual(mapBlankLines(log, { redaction }));
    const ends = withoutStarts(log);
    expect(mapLines(ends, { redaction })).toEqual(mapBlankLines(ends, { redaction }));
  });

  it('gives the same bytes however it is cut, and however little is remembered', () => {
    expect(mapLines(log, {}, [3, 1, 40])).toEqual(mapBlankLines(log));
    const small = {
      maxHeldSpans: 4,
      maxRememberedSpans: 20,
      maxEventsPerSpan: 2,
      maxWaitingEvents: 10,
      eventHoldMs: 3,
    };
    expect(mapLines(log, small, [7])).toEqual(mapBlankLines(log, small));
  });
});

it.each(LARGE_SAMPLES_OF_COSTLY_CHECKS)(
  'the log of %s gives the same bytes whether attributes are copied or put together',
  (name) => {
    const log = logOf(name);
    expect(isDeepStrictEqual(mapLines(log, {}, [2_000, 1, 700]), mapBlankLines(log))).toBe(true);
  },
  120_000,
);

it.each(SWITCHES)(
  'the lines of a build give the same bytes whether attributes are copied or put together without %s',
  (name) => {
    const log = readFileSync('test/fixture/samples/build-mixed/otel.jsonl');
    const options = { switches: mappingSwitchesFrom({ [name]: false }) };
    expect(mapLines(log, options)).toEqual(mapBlankLines(log, options));
  },
);
