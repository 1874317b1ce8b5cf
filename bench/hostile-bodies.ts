import { parseArgs } from 'node:util';
import { gzipSync } from 'node:zlib';
import { createDecoding } from '../src/otlp/create-decoding.js';
import { OtlpDecodeError } from '../src/otlp/otlp-codec.js';

// The longest time for which decoding a hostile body keeps the event loop from everybody else, in milliseconds; 100 is the goal.
const { values } = parseArgs({ options: { mib: { type: 'string', default: '63' } } });
const bytes = Number(values.mib) * 2 ** 20;
const decoding = createDecoding({ engineNames: [] });

/** Length-delimited fields, one in the other, around so much content. */
function within(content: Buffer, ...fields: readonly number[]): Buffer {
  return fields.toReversed().reduce((body: Buffer, field) => {
    const length: number[] = [];
    for (let rest = body.length; ; rest = Math.floor(rest / 128)) {
      if (rest < 128) return Buffer.concat([Buffer.from([(field << 3) | 2, ...length, rest]), body]);
      length.push((rest % 128) | 128);
    }
  }, content);
}

const empties = (field: number) => Buffer.alloc(bytes, Buffer.from([(field << 3) | 2, 0]));
/** 1,500 spans of 200 empty attributes each: as much as a body may hold of them. */
const full = Buffer.concat(Array.from({ length: 1_500 }, () => within(Buffer.alloc(4_000, Buffer.from([0x4a, 0])), 2)));
const json = (begin: string, end: string) =>
  Buffer.concat([Buffer.from(begin), Buffer.alloc(bytes - (bytes % 3), '{},'), Buffer.from(`{}${end}`)]);
const long = (text: string) => text.repeat(Math.ceil(bytes / text.length));
/** One span in JSON with this text in one of its values. */
const spanWith = (member: string) =>
  Buffer.from(
    `{"resourceSpans":[{"scopeSpans":[{"spans":[{"traceId":"${'a'.repeat(32)}","spanId":"${'b'.repeat(16)}","name":"n","startTimeUnixNano":"1","endTimeUnixNano":"2",${member}}]}]}]}`,
  );
const attribute = (text: string) => `"attributes":[{"key":"k","value":{"stringValue":"${text}"}}]`;
const wireSpan = (text: string) =>
  within(
    Buffer.concat([
      within(Buffer.alloc(16, 1), 1),
      within(Buffer.alloc(8, 1), 2),
      within(Buffer.from('n'), 5),
      within(Buffer.concat([within(Buffer.from('k'), 1), within(Buffer.from(text), 2, 1)]), 9),
    ]),
    1,
    2,
    2,
  );

const BODIES: readonly (readonly [string, 'protobuf' | 'json', Buffer])[] = [
  ['empty resources', 'protobuf', empties(1)],
  ['empty scopes', 'protobuf', within(empties(2), 1)],
  ['empty spans', 'protobuf', within(empties(2), 1, 2)],
  ['empty attributes of one span', 'protobuf', within(empties(9), 1, 2, 2)],
  ['empty links of one span', 'protobuf', within(empties(13), 1, 2, 2)],
  ['3 million attributes of 1,500 spans', 'protobuf', within(full, 1, 2)],
  ['empty resources in JSON', 'json', json('{"resourceSpans":[', ']}')],
  ['empty spans in JSON', 'json', json('{"resourceSpans":[{"scopeSpans":[{"spans":[', ']}]}]}')],
  ['unknown keys of a request in JSON', 'json', Buffer.from(`{${long('"a":0,')}"b":0}`)],
  ['unknown keys of a resource in JSON', 'json', Buffer.from(`{"resourceSpans":[{${long('"a":0,')}"b":0}]}`)],
  ['unknown keys of a span in JSON', 'json', spanWith(`${long('"a":0,')}"b":0`)],
  ['a long unknown text in JSON', 'json', Buffer.from(`{"a":"${long('a')}"}`)],
  ['a long unknown text of a span in JSON', 'json', spanWith(`"a":"${long('a')}"`)],
  ['a long value in JSON', 'json', spanWith(attribute(long('a')))],
  ['a long value of escapes in JSON', 'json', spanWith(attribute(long('\\n')))],
  ['a long value of digits in JSON', 'json', spanWith(attribute(long('1234567890123456789 ')))],
  ['a long name in JSON', 'json', spanWith(`"name":"${long('a')}"`)],
  [
    'a long value that ends nowhere in JSON',
    'json',
    Buffer.from(`{"resourceSpans":[{"scopeSpans":[{"spans":[{"name":"${long('a')}`),
  ],
  ['a long number in JSON', 'json', spanWith(`"a":${long('1')}`)],
  ['a long value of quotes', 'protobuf', wireSpan(long('"'))],
  ['a long value', 'protobuf', wireSpan(long('a'))],
];

for (const [name, encoding, body] of BODIES) {
  const residentBytes = process.memoryUsage.rss();
  let longestMs = 0;
  let lastMs = performance.now();
  const measure = () => {
    const nowMs = performance.now();
    longestMs = Math.max(longestMs, nowMs - lastMs);
    lastMs = nowMs;
  };
  let isOver = false;
  const look = () => {
    measure();
    if (!isOver) setImmediate(look);
  };
  setImmediate(look);
  const startedMs = performance.now();
  let outcome = 'taken';
  try {
    (await decoding.bodies[encoding].traces.decode(body)).delivery.release?.();
  } catch (error) {
    if (!(error instanceof OtlpDecodeError)) throw error;
    outcome = error.message;
  }
  isOver = true;
  measure();
  const figures = `${Math.round(longestMs)} ms at a time, ${Math.round(performance.now() - startedMs)} ms in all, ${Math.round((process.memoryUsage.rss() - residentBytes) / 2 ** 20)} MiB more`;
  console.log(`${name.padEnd(38)} ${gzipSync(body).length} bytes of gzip: ${figures}; ${outcome}`);
}
