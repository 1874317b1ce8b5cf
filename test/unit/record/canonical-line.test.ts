import { isDeepStrictEqual } from 'node:util';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { parseCanonicalLine } from '../../../src/record/canonical-line.js';
import { parseAnyLine } from '../../../src/record/record-line.js';
import type { TelemetryRecord } from '../../../src/record/telemetry-record.js';
import { SMALL_SAMPLES, sampleLines } from '../../fake/sample-run.js';

function content(record: TelemetryRecord): unknown {
  const links =
    'links' in record ? record.links?.map((link) => ({ ...link, attributes: link.attributes.value })) : null;
  return { ...record, links, attributes: record.attributes.value };
}

/** What parsing the whole line gives; `undefined` where it is no record. */
function generally(line: string): unknown {
  try {
    return content(parseAnyLine(line));
  } catch {
    return undefined;
  }
}

describe('a line in the layout of the engine', () => {
  it.each([...SMALL_SAMPLES, 'big-build'])('of %s is read as parsing it whole reads it', (run) => {
    for (const line of sampleLines(run)) {
      const record = parseCanonicalLine(line);
      const canonical = record && content(record);
      // `toEqual` takes long over thousands of lines.
      if (!isDeepStrictEqual(canonical, generally(line))) expect(canonical).toEqual(generally(line));
    }
  });

  it('keeps the spelling of numbers in its attributes', () => {
    const [first = ''] = sampleLines('parse');
    const line = first.replace('"attributes":{', '"attributes":{"a":1.0,"b":12345678901234567890,');
    expect(parseCanonicalLine(line)?.attributes.json).toContain('{"a":1.0,"b":12345678901234567890,');
  });

  it('changed anywhere is left to parsing it whole, or read the same', () => {
    const lines = SMALL_SAMPLES.flatMap((run) => sampleLines(run).filter((line) => line.length < 3000));
    const changes = fc.array(
      fc.record({
        at: fc.nat(3000),
        kind: fc.constantFrom('set', 'cut', 'insert'),
        text: fc.oneof(
          fc.constantFrom('"', '\\', '{', '}', ',', ':', ' ', '\u0000', 'null', '0', '\ud800'),
          fc.string({ maxLength: 2 }),
        ),
      }),
      { minLength: 1, maxLength: 3 },
    );
    fc.assert(
      fc.property(fc.constantFrom(...lines), changes, (line, list) => {
        let changed = line;
        for (const { at, kind, text } of list) {
          const place = at % changed.length;
          changed =
            changed.slice(0, place) +
            (kind === 'cut' ? '' : text) +
            changed.slice(kind === 'insert' ? place : place + 1);
        }
        const record = parseCanonicalLine(changed);
        if (record !== undefined) expect(content(record)).toEqual(generally(changed));
      }),
      { numRuns: 5000 },
    );
  });
});
