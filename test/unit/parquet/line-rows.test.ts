import { describe, expect, it } from 'vitest';
import { SAMPLES_WITH_PARQUET, sampleLines } from './samples.js';
import { throughParquet } from './through-parquet.js';

describe('lines written as rows', () => {
  it.each(SAMPLES_WITH_PARQUET)('are taken from cells, all lines of %s but a few of a command', async (sample) => {
    const others: string[] = [];
    const { reasons } = await throughParquet(
      sampleLines(sample).map((line) => Buffer.from(line)),
      (record) => {
        others.push(`${record.spanName}: ${record.eventType} ${record.attributes.json}`);
        return record;
      },
    );
    expect(reasons.every((reason) => reason === undefined)).toBe(true);
    // Names that tell what a span is only by a pattern, lists of objects, whose keys have an order, and numbers below zero.
    const isRare = /^Query executed: |^Package |\.(?:Process|Invocation|Groups) |"query_error_vendor_code":-/;
    expect(others.filter((one) => !isRare.test(one))).toEqual([]);
  });

  it('keep what is no valid UTF-8 as the replacement characters that a text has for it', async () => {
    const [line = ''] = sampleLines('parse');
    const [before = '', after = ''] = line.split('INFO', 2);
    const damaged = Buffer.concat([Buffer.from(before), Buffer.from([0x49, 0xff, 0xc3]), Buffer.from(after)]);
    const { records } = await throughParquet([damaged]);
    expect(records[0]?.severityText).toBe('I\ufffd\ufffd');
  });

  it('keep numbers and texts that JavaScript would spell otherwise as they stand', async () => {
    const [line = ''] = sampleLines('parse');
    const odd = '{"a":1.0,"b":123456789012345678901,"c":"\\u00e9\\/","a b":[ ],"7":{"z":1,"y":2}}';
    const record = line.replace(/"event_type":.*/, `"event_type":"some.Event","attributes":${odd}}`);
    const { reasons, records } = await throughParquet([Buffer.from(record)]);
    expect(reasons).toEqual([undefined]);
    expect(records[0]?.attributes.json).toBe(odd.replace('[ ]', '[]'));
  });
});
