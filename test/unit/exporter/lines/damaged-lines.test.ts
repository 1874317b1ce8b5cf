import { readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { OtelRunMapper } from '../../../../src/exporter/mapping/otel-run-mapper.js';
import { ENGINE } from '../mapping/read-sample.js';

const LOG = readFileSync('test/fixture/samples/build-mixed/otel.jsonl');

it('lines that are no records are counted and passed over, wherever they are cut off', () => {
  const line = LOG.subarray(0, LOG.indexOf('\n'));
  const end = LOG.subarray(
    LOG.indexOf('{"record_type":"SpanEnd"'),
    LOG.indexOf('\n', LOG.indexOf('{"record_type":"SpanEnd"')),
  );
  for (let length = 1; length < end.length; length += 3) {
    const mapper = new OtelRunMapper();
    const lines = Buffer.concat([line, Buffer.from('\n'), end.subarray(0, length), Buffer.from('\n')]);
    expect(mapper.pushLines({ resource: ENGINE, offset: 0, lines })).toBe(1);
    // Without a line break, and without bytes behind it.
    const torn = Uint8Array.from(end.subarray(0, length));
    expect(mapper.pushLines({ resource: ENGINE, offset: lines.length, lines: torn })).toBe(1);
    expect(mapper.heldCount).toBe(0);
  }
});

it('a span whose line turns out to be damaged as it is sent is passed over', () => {
  const text = LOG.toString().replace('{"node_warning_outcome":', '{"node_warning_outcome";');
  const mapper = new OtelRunMapper();
  const whole = new OtelRunMapper();
  mapper.pushLines({ resource: ENGINE, offset: 0, lines: Buffer.from(text) });
  whole.pushLines({ resource: ENGINE, offset: 0, lines: LOG });
  const difference = whole.take(true).length - mapper.take(true).length;
  expect(difference).toBe(1);
});

it('a span whose node has a damaged name is counted and passed over', () => {
  const log = Buffer.from(LOG);
  const lines = log.toString('latin1').split('\n');
  const at = lines.findIndex((line) => line.startsWith('{"record_type":"SpanEnd"') && line.includes('"unique_id":"m'));
  const offset = lines.slice(0, at).join('\n').length + 1;
  log[offset + (lines[at]?.indexOf('"unique_id":"m') ?? 0) + '"unique_id":"m'.length] = 7;
  const mapper = new OtelRunMapper();
  expect(mapper.pushLines({ resource: ENGINE, offset: 0, lines: log })).toBe(1);
});
