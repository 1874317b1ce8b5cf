import { readFileSync } from 'node:fs';
import { isDeepStrictEqual } from 'node:util';
import { gunzipSync } from 'node:zlib';
import { describe, expect, it } from 'vitest';
import { WireCursor } from '../../../src/otlp/any-value.js';
import { LineKind } from '../../../src/otlp/wire/line-scanner.js';
import { fields, GROUP, RECORD, SCOPE } from '../../../src/otlp/wire/wire-decoder.js';
import { formatRecordLine } from '../../../src/record/record-line.js';
import { decodeBody } from '../../fake/decode-at-once.js';
import { SENT_SAMPLES, SMALL_SAMPLES, sampleBodies, sampleLines } from '../../fake/sample-run.js';
import { misscan, readWireItem, scanLine } from '../../fake/scanned-line.js';

const SENT = [...SENT_SAMPLES, 'big-build'];
/** Spans that are left to plain code on the wire as well: by their names, and for a number that is negative. */
const OF_PLAIN_CODE = /"span_name":"(?:dbt invocation |dbt process |Query executed")|"query_error_vendor_code":-/;
const EVENT_ID = /"event_id":"[^"]*"/;

/** Every span and log record of a request, as it is on the wire. */
function* itemsOf(body: Buffer): Generator<Buffer> {
  for (const [, groupStart, groupEnd] of fields(new WireCursor(body), body.length, GROUP)) {
    for (const [, scopeStart, scopeEnd] of fields(cursorAt(body, groupStart), groupEnd, SCOPE)) {
      for (const [, start, end] of fields(cursorAt(body, scopeStart), scopeEnd, RECORD))
        yield body.subarray(start, end);
    }
  }
}

function cursorAt(body: Buffer, position: number): WireCursor {
  const cursor = new WireCursor(body);
  cursor.position = position;
  return cursor;
}

const bytesOf = (line: string) => Buffer.from(`${line}\n`);

describe('of the lines of a run that was received', () => {
  it.each(SENT)('all that are written of cells give the same cells: %s', (run) => {
    let count = 0;
    for (const { signal, body } of sampleBodies(run)) {
      for (const item of itemsOf(body)) {
        const read = readWireItem(signal, item);
        if (read === undefined) continue;
        const { written, cells, id } = scanLine(Buffer.from(read.line, 'latin1'));
        const start = read.startLine === undefined ? undefined : scanLine(Buffer.from(read.startLine, 'latin1'));
        const isSame = written === read.line && isDeepStrictEqual(cells, read.cells);
        // Says what is wrong where something is.
        if (!isSame) expect({ written, cells }).toEqual({ written: read.line, cells: read.cells });
        if (start !== undefined) expect([start.kind, start.id]).toEqual([LineKind.start, id]);
        count += 1;
      }
    }
    expect(count).toBeGreaterThan(0);
  });

  it('nearly all are read, whatever wrote them', () => {
    const read = { SpanStart: 0, SpanEnd: 0, LogRecord: 0 };
    const all = { SpanStart: 0, SpanEnd: 0, LogRecord: 0 };
    for (const { signal, body } of SENT.flatMap(sampleBodies)) {
      for (const record of decodeBody(signal, body).delivery.batches.flatMap(({ records }) => records)) {
        const line = bytesOf(formatRecordLine(record));
        expect(misscan(line)).toBeUndefined();
        const { kind } = scanLine(line);
        all[record.recordType] += 1;
        read[record.recordType] += kind === LineKind.other ? 0 : 1;
      }
    }
    expect(read.SpanStart).toBe(all.SpanStart);
    expect(read.SpanEnd / all.SpanEnd).toBeGreaterThan(0.99);
    expect(read.LogRecord / all.LogRecord).toBeGreaterThan(0.99);
  });
});

describe('of the lines of the engine', () => {
  const lines = [
    ...[...SMALL_SAMPLES, 'big-build'].flatMap(sampleLines),
    ...['redaction', 'versions'].flatMap((name) =>
      readFileSync(`test/fixture/${name}/otel.jsonl`, 'utf8').trimEnd().split('\n'),
    ),
    ...['duckdb', 'postgres'].flatMap((name) =>
      gunzipSync(readFileSync(`test/fixture/errors/${name}.jsonl.gz`))
        .toString()
        .trimEnd()
        .split('\n'),
    ),
  ];

  it('each that is read gives the very line', () => {
    for (const line of lines) expect(misscan(bytesOf(line))).toBeUndefined();
  });

  it('nearly all ends are read, and log records but for the id that OTLP does not carry', () => {
    const ends = lines.filter((line) => line.startsWith('{"record_type":"SpanEnd"') && !OF_PLAIN_CODE.test(line));
    const logs = lines.filter((line) => line.startsWith('{"record_type":"LogRecord"'));
    const readCount = (some: readonly string[]) =>
      some.filter((line) => scanLine(bytesOf(line)).kind !== LineKind.other).length;
    expect(readCount(ends) / ends.length).toBeGreaterThan(0.99);
    expect(readCount(logs)).toBe(0);
    const withoutIds = logs.map((line) => line.replace(EVENT_ID, '"event_id":null'));
    expect(readCount(withoutIds) / logs.length).toBeGreaterThan(0.99);
  });
});

const TRACE = '0af7651916cd43dd8448eb211c80319c';
const HEAD = `"trace_id":"${TRACE}","span_id":"00f067aa0ba902b7"`;

function spanLine(attributes: string, changes: Readonly<Record<string, string>> = {}): string {
  const parts = {
    name: '"Node processed (model.a.b)"',
    parent: '"1111111111111111"',
    links: `[{"trace_id":"${TRACE}","span_id":"2222222222222222","attributes":{}}]`,
    start: '"1795221792681366001"',
    end: '"1795221792681366002"',
    severity: '"severity_number":9,"severity_text":"INFO"',
    status: '{"message":"broken","code":2}',
    type: '"v1.public.events.fusion.node.NodeProcessed"',
    more: '',
    ...changes,
  };
  const head = `${HEAD},"span_name":${parts.name},"parent_span_id":${parts.parent},"links":${parts.links}`;
  const times = `"start_time_unix_nano":${parts.start},"end_time_unix_nano":${parts.end},${parts.severity}`;
  const tail = `"status":${parts.status},"event_type":${parts.type},"attributes":{${attributes}}${parts.more}}`;
  return `{"record_type":"SpanEnd",${head},${times},${tail}`;
}

function logLine(attributes: string, changes: Readonly<Record<string, string>> = {}): string {
  const parts = {
    spanId: '"00f067aa0ba902b7"',
    spanName: '"Node processed (model.a.b)"',
    eventId: 'null',
    severity: '"severity_number":9,"severity_text":"INFO"',
    body: '"done"',
    type: '"v1.public.events.fusion.log.LogMessage"',
    ...changes,
  };
  const head = `"trace_id":"${TRACE}","span_id":${parts.spanId},"span_name":${parts.spanName}`;
  const time = `"event_id":${parts.eventId},"time_unix_nano":"1795221792681366001",${parts.severity}`;
  const tail = `"body":${parts.body},"event_type":${parts.type},"attributes":{${attributes}}}`;
  return `{"record_type":"LogRecord",${head},${time},${tail}`;
}

const long = (byteCount: number) => 'x'.repeat(byteCount);
/** All escapes that are written. */
const ESCAPES = JSON.stringify(String.fromCharCode(...Array.from({ length: 0x80 }, (_, code) => code)));

describe('a line is read that', () => {
  it.each<[string, string]>([
    ['has no attributes', spanLine('')],
    ['has a parent, a link, a status with its message', spanLine('"unique_id":"model.a.b"')],
    ['has none of these', spanLine('', { parent: 'null', links: 'null', status: 'null' })],
    ['has a status without a message', spanLine('', { status: '{"message":null,"code":1}' })],
    ['has a message and no code', spanLine('', { status: '{"message":"x","code":0}' })],
    ['has all escapes', spanLine(`"unique_id":${ESCAPES}`, { name: `"Node processed (${ESCAPES.slice(1)}` })],
    ['is not of ASCII', spanLine('"unique_id":"ü 日本 😀 \u2028"', { name: '"Node processed (日本)"' })],
    ['has numbers', spanLine('"defined_at_col":0,"defined_at_line":268435455,"rows_affected":"5","sao_enabled":true')],
    ['has nested values', spanLine('"node_test_detail":{"a":[1,-2,{"b":"}\\""}],"c":null},"zeta":[]')],
    ['has an attribute that nobody knows', spanLine('"newer":"x","other":false')],
    ...[60, 99, 100, 101, 102, 103, 104, 119, 120, 126, 127, 128, 129, 16_384, 200_000].map(
      (byteCount): [string, string] => [
        `has texts of ${byteCount} bytes`,
        spanLine(`"a":"${long(byteCount)}","b":"${long(byteCount)}","unique_id":"${long(byteCount)}"`, {
          name: `"Node processed (${long(byteCount)})"`,
          status: `{"message":"${long(byteCount)}","code":2}`,
        }),
      ],
    ),
    ['is a log record', logLine('"code":7,"text":"x"')],
    ['is a log record without attributes, with a long body', logLine('', { body: `"${long(20_000)}\\n"` })],
    ['is a log record without a body', logLine('', { body: '""' })],
    ['is a log record without the name of its span', logLine('', { spanName: 'null' })],
    ['is a log record of a span whose name has escapes', logLine('', { spanName: ESCAPES })],
  ])('%s', (_what, line) => {
    for (const isLast of [false, true]) {
      expect(misscan(bytesOf(line), isLast)).toBeUndefined();
      expect(scanLine(bytesOf(line), isLast).written).toBeDefined();
    }
  });
});

describe('a line is left to plain code that', () => {
  const [shuffled, blank] = [spanLine('').replace(/("span_id":"\w*"),("span_name":"[^"]*")/, '$2,$1'), ', '];
  it.each<[string, string]>([
    ['has its keys in another order', shuffled],
    ['has blanks', spanLine('').replaceAll(',', blank)],
    ['has a key more', spanLine('', { more: ',"newer":1' })],
    ['has something behind it', `${spanLine('')} `],
    ['lacks its last brace', spanLine('').slice(0, -1)],
    ['has a return before its break', `${spanLine('')}\r`],
    ['is of another kind', spanLine('').replace('SpanEnd', 'SpanOdd')],
    ['is another’s behind half of its own', spanLine('').slice(0, 300) + spanLine('')],
    ['has capitals in an id', spanLine('').replace(TRACE, TRACE.toUpperCase())],
    ['has no id', spanLine('').replace('00f067aa0ba902b7', '0000000000000000')],
    ['has a parent of zeros', spanLine('', { parent: '"0000000000000000"' })],
    ['has an empty list of links', spanLine('', { links: '[]' })],
    [
      'has a link with attributes',
      spanLine('', { links: `[{"trace_id":"${TRACE}","span_id":"2222222222222222","attributes":{"a":1}}]` }),
    ],
    [
      'has two links',
      spanLine('', {
        links: `[{${HEAD},"attributes":{}},{${HEAD},"attributes":{}}]`,
      }),
    ],
    ['has a short time', spanLine('', { start: '"5"' })],
    ['has a long time', spanLine('', { start: '"17952217926813660010"' })],
    ['has a time with a zero before it', spanLine('', { start: '"0795221792681366001"' })],
    ['has a time that is a number', spanLine('', { start: '1795221792681366001' })],
    ['has another severity than its event', spanLine('', { severity: '"severity_number":5,"severity_text":"DEBUG"' })],
    ['has another event than its name says', spanLine('', { type: '"v1.public.events.fusion.node.NodeEvaluated"' })],
    ['has an empty message', spanLine('', { status: '{"message":"","code":2}' })],
    ['has a status that says nothing', spanLine('', { status: '{"message":null,"code":0}' })],
    ['has an odd code', spanLine('', { status: '{"message":null,"code":3}' })],
    ['has a status with more in it', spanLine('', { status: '{"message":null,"code":1,"x":1}' })],
    ['has a name that says nothing', spanLine('', { name: '"anything"' })],
    ['has an escape that is not needed', spanLine('"unique_id":"\\u0041"')],
    ['has an escaped slash', spanLine('"unique_id":"a\\/b"')],
    ['has a surrogate', spanLine('"unique_id":"\\ud83d\\ude00"')],
    ['has half a surrogate', spanLine('"unique_id":"\\ud83d"')],
    ['has an escape in capitals', spanLine('"unique_id":"\\u001F"')],
    ['has a long escape for a short one', spanLine('"unique_id":"\\u000a"')],
    ['has an escape that is none', spanLine('"unique_id":"\\q"')],
    ['has a NUL', spanLine('"unique_id":"a\u0000b"')],
    ['has a tab', spanLine('"unique_id":"a\tb"')],
    ['has a break in a text', spanLine('"unique_id":"a\nb"')],
    ['has an escape in a key', spanLine('"\\u0061":1')],
    ['has a long key', spanLine(`"${long(128)}":1`)],
    ['has a negative number', spanLine('"defined_at_col":-1')],
    ['has a fraction', spanLine('"defined_at_col":1.5')],
    ['has a zero before a number', spanLine('"defined_at_col":01')],
    ['has a large number', spanLine('"defined_at_col":268435456')],
    ['has a very large number', spanLine('"defined_at_col":123456789012345678901234567890')],
    ['has a number where a text is', spanLine('"rows_affected":5')],
    ['has a number for a name', spanLine('"node_outcome":1')],
    ['has a name of an enum as documentation spells it', spanLine('"node_outcome":"success"')],
    ['has null', spanLine('"unique_id":null')],
    ['has an object where a text is', spanLine('"unique_id":{"a":1}')],
    ['has a text that looks like JSON where JSON is', spanLine('"node_test_detail":"{}"')],
    ['has a nested value that is no JSON', spanLine('"node_test_detail":{"a":}')],
    ['has a nested value without end', spanLine('"node_test_detail":{"a":[1}')],
    ['has a nested fraction', spanLine('"node_test_detail":{"a":1.5}')],
    ['has a comma too many', spanLine('"unique_id":"a",')],
    ['has many attributes', spanLine(Array.from({ length: 129 }, (_, at) => `"a${1000 + at}":1`).join())],
    ['has more than a megabyte', spanLine(`"unique_id":"${long(1024 * 1024)}"`)],
    ['is a log record with an id of its own', logLine('', { eventId: '"x"' })],
    ['is a log record of no span', logLine('', { spanId: 'null' })],
    ['is a log record of a span with an odd name', logLine('', { spanName: '"\\q"' })],
    ['is a log record without a severity', logLine('', { severity: '"severity_number":0,"severity_text":"INFO"' })],
    ['is a log record of a high severity', logLine('', { severity: '"severity_number":25,"severity_text":"X"' })],
    ['is a log record of an odd severity', logLine('', { severity: '"severity_number":1.0,"severity_text":"X"' })],
    ['is a log record with an odd event', logLine('', { type: '"a b"' })],
    ['is a log record without a text', logLine('', { body: 'null' })],
    ['is empty', ''],
  ])('%s', (_what, line) => {
    for (const isLast of [false, true]) expect(scanLine(bytesOf(line), isLast).kind).toBe(LineKind.other);
  });

  it('does not end', () => {
    for (const line of [spanLine('"node_test_detail":{"a":"b"},"unique_id":"x"'), logLine('"code":7')]) {
      const bytes = Buffer.from(line);
      for (let length = 0; length <= bytes.length; length++) {
        for (const isLast of [false, true]) {
          expect(scanLine(bytes.subarray(0, length), isLast).kind).toBe(LineKind.other);
        }
      }
    }
  });
});

it('keys that come twice, or not in their order, make no cells', () => {
  for (const attributes of ['"a":1,"a":1', '"b":1,"a":1']) {
    expect(scanLine(bytesOf(spanLine(attributes))).written).toBeUndefined();
  }
});

it.each([
  ['EXECUTION_PHASE_RUN', '"severity_number":9,"severity_text":"INFO"', true],
  ['EXECUTION_PHASE_RUN', '"severity_number":5,"severity_text":"DEBUG"', false],
  ['EXECUTION_PHASE_RENDER', '"severity_number":9,"severity_text":"INFO"', false],
  ['EXECUTION_PHASE_RENDER', '"severity_number":5,"severity_text":"DEBUG"', true],
])('an evaluated node has the severity of its phase: %s with %s', (phase, severity, isRead) => {
  const type = '"v1.public.events.fusion.node.NodeEvaluated"';
  const line = spanLine(`"phase":"${phase}"`, { name: '"Node evaluated (model.a.b)"', type, severity });
  expect(scanLine(bytesOf(line)).written !== undefined).toBe(isRead);
});
