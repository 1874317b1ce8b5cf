import fc from 'fast-check';
import {
  MESSAGE_KEY_ORDERS,
  MESSAGE_LAYOUTS,
  ONEOF_FIELD,
  ONEOF_MEMBERS,
} from '../../../src/parquet/message-layout.js';
import { parseSpanId, parseTraceId } from '../../../src/record/telemetry-record.js';

const hex = (length: number) =>
  fc.string({ unit: fc.constantFrom(...'0123456789abcdef'), minLength: length, maxLength: length });
const traceIds = hex(32).filter((id) => parseTraceId(id) !== undefined);
const spanIds = hex(16).filter((id) => parseSpanId(id) !== undefined);
const texts = fc.oneof(
  fc.string({ unit: 'grapheme', maxLength: 20 }),
  fc.string({
    unit: fc.constantFrom('a', 'é', '→', '😀', '"', '\\', '\n', '\t', '\u0001', '\u007f', '/', ' '),
    maxLength: 30,
  }),
  fc.constantFrom('', 'EXECUTION_PHASE_RUN', 'x'.repeat(100), '\ud800', '\u2028'),
);
const times = fc
  .oneof(
    fc.bigInt({ min: 1_700_000_000_000_000_000n, max: 1_800_000_000_000_000_000n }),
    fc.bigInt({ min: 0n, max: 2n ** 64n }),
  )
  .map(String);
const numbers = fc.oneof(
  fc.integer(),
  fc.double(),
  fc.constantFrom(0, -0, 1, 4_294_967_295, 4_294_967_296, -2_147_483_648, 9_007_199_254_740_991, 1e21, 0.1, 1e-7),
);
const counts = fc.oneof(
  fc.bigInt({ min: 0n, max: 2n ** 64n }).map(String),
  fc.constantFrom('0', '7', '007', '', '12345678901234567', '-1'),
);
const someKeys = fc.constantFrom(
  'a',
  'ab',
  'ab ',
  'b',
  '7',
  '__proto__',
  'é',
  '',
  'name',
  'failing_rows',
  'test_outcome',
);
const json = fc.letrec((tie) => ({
  value: fc.oneof(
    { maxDepth: 4 },
    texts,
    numbers,
    fc.boolean(),
    fc.constant(null),
    counts,
    fc.array(tie('value'), { maxLength: 3 }),
    fc.array(fc.tuple(someKeys, tie('value')), { maxLength: 4 }).map(Object.fromEntries),
  ),
})).value;
const objects = fc.array(fc.tuple(someKeys, json), { maxLength: 4 }).map((entries) => Object.fromEntries(entries));

const debugKeys = fc.constantFrom('float64', 'bool', 'string', 'bytes', 'string', 'other');
const debugMaps = fc
  .array(fc.tuple(someKeys, fc.array(fc.tuple(debugKeys, json), { maxLength: 2 }).map(Object.fromEntries)), {
    maxLength: 3,
  })
  .map((entries) => Object.fromEntries([...entries].sort(([a], [b]) => (a < b ? -1 : 1))));

/** Names that no message has: before, between and after those that it has. */
const UNKNOWN_NAMES = ['_debug_info', 'nam', 'name2', 'name ', 'other', 'phase_of', 'zz', 'é'];
/** Such as keep no order, and one that the payload gives to something else. */
const AWKWARD_NAMES = ['7', '__proto__', ONEOF_FIELD];

/** Attributes of a message: mostly what its fields hold, sometimes anything. */
function attributesOf(eventType: string): fc.Arbitrary<unknown> {
  const layout = MESSAGE_LAYOUTS.get(eventType);
  const names = [
    ...(layout?.fields ?? []),
    ...(layout?.fields.has(ONEOF_FIELD) ? ONEOF_MEMBERS.keys() : []),
    ...Object.keys(MESSAGE_KEY_ORDERS.get(eventType) ?? {}),
    ...(layout?.payloadMap === undefined ? [] : [layout.payloadMap]),
  ].filter((name) => name !== ONEOF_FIELD);
  const few = (some: readonly string[]) =>
    fc.oneof({ weight: 4, arbitrary: fc.constant<string[]>([]) }, { weight: 1, arbitrary: fc.subarray([...some]) });
  const fitting = (name: string) => {
    if (ONEOF_MEMBERS.has(name)) return objects;
    if (name === layout?.payloadMap) return debugMaps;
    if (/duration|count|rows|_ms$/.test(name)) return counts;
    if (/line|col|code$|number|index/.test(name)) return numbers;
    if (/^(is_|in_|sao)/.test(name)) return fc.boolean();
    return texts;
  };
  return fc
    .tuple(fc.subarray(names), few(UNKNOWN_NAMES), few(AWKWARD_NAMES))
    .map((parts) => parts.flat())
    .chain((chosen) =>
      fc.tuple(
        ...chosen.map((name) =>
          fc.tuple(
            fc.constant(name),
            fc.oneof({ weight: 20, arbitrary: fitting(name) }, { weight: 1, arbitrary: json }),
          ),
        ),
      ),
    )
    .map((entries) => Object.fromEntries([...entries].sort(([a], [b]) => (a < b ? -1 : 1))));
}

const eventTypes = fc.oneof(
  { weight: 6, arbitrary: fc.constantFrom(...MESSAGE_LAYOUTS.keys(), ...MESSAGE_KEY_ORDERS.keys()) },
  { weight: 1, arbitrary: texts },
);
const links = fc.array(
  fc.record({ trace_id: traceIds, span_id: spanIds, attributes: fc.oneof(fc.constant({}), objects) }),
  { maxLength: 3 },
);
const orNull = <T>(values: fc.Arbitrary<T>) => fc.option(values, { nil: null });

/** The text of one record, its keys in the engine's order. */
const engineLines = eventTypes.chain((eventType) => {
  const severity = { severity_number: fc.integer({ min: 0, max: 120 }), severity_text: texts };
  const end = { event_type: fc.constant(eventType), attributes: attributesOf(eventType) };
  const head = (recordType: string, id: fc.Arbitrary<unknown>) => ({
    record_type: fc.constant(recordType),
    trace_id: traceIds,
    span_id: id,
  });
  const span = { span_name: texts, parent_span_id: orNull(spanIds), links: orNull(links), start_time_unix_nano: times };
  const status = orNull(fc.record({ message: orNull(texts), code: fc.oneof(fc.integer({ min: 0, max: 2 }), numbers) }));
  return fc.oneof(
    fc.record({ ...head('SpanStart', spanIds), ...span, ...severity, ...end }),
    fc.record({ ...head('SpanEnd', spanIds), ...span, end_time_unix_nano: times, ...severity, status, ...end }),
    fc.record({
      ...head('LogRecord', orNull(spanIds)),
      span_name: orNull(texts),
      event_id: orNull(fc.oneof(fc.uuid(), texts)),
      time_unix_nano: times,
      ...severity,
      body: texts,
      ...end,
    }),
  );
});

/** Other layouts of the same record, and damage. */
const changes: readonly ((line: string, at: number) => string)[] = [
  (line) => line,
  (line) => line,
  (line) => line,
  (line) => line.replace(/\\n/g, '\\u000A').replace(/\\t/g, '\\u0009'),
  (line) => line.replaceAll('/', '\\/').replaceAll('é', '\\u00e9'),
  (line) => `${line}\r`,
  (line) => line.replaceAll('":', '": '),
  (line) => `${line.slice(0, -1)},"more":1}`,
  (line) => JSON.stringify(Object.fromEntries(Object.entries(JSON.parse(line)).reverse())),
  (line) => line.replaceAll(':0', ':-0').replaceAll(':1,', ':1.0,'),
  (line) => line.replace(/"attributes":\{/, '"attributes":{"name":"first","name":"second",'),
  (line, at) => line.slice(0, at % line.length),
  (line, at) => line.slice(0, at % line.length) + line.slice((at % line.length) + 1),
  (line, at) => `${line.slice(0, at % line.length)}"${line.slice((at % line.length) + 1)}`,
  () => '',
  () => '  \t',
];

/** Lines of JSONL: most as the engine lays them out, others in layouts that JSON allows too, or damaged. No line feeds. */
export const anyLines: fc.Arbitrary<string> = fc
  .tuple(engineLines, fc.nat({ max: changes.length - 1 }), fc.nat())
  .map(([record, change, at]) => changes[change]?.(JSON.stringify(record), at) ?? '');
