import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { LoggedRecord } from '../../../src/log/record-log.js';
import { Attributes, asImported, UNKNOWN_RESOURCE } from '../../../src/record/attributes.js';
import type { TelemetryRecord } from '../../../src/record/telemetry-record.js';
import { InvocationAssigner } from '../../../src/run/invocation-assigner.js';
import { summarizeInvocation } from '../../../src/run/open-run.js';
import { fromJsonl, fromOtlp } from './logged-samples.js';

/** The spans and log records of the two commands, by the commands' own files: `b`'s begins with the second process. */
const own = fromJsonl('overlapping');
const secondFile = own.findLastIndex(
  ({ record }) => record.recordType === 'SpanStart' && record.eventType.endsWith('.Process'),
);
const commandOf = new Map(own.map(({ record }, index) => [keyOf(record), index < secondFile ? 'a' : 'b']));

/** What tells a record from all others, also over OTLP (which has no event id). */
function keyOf(record: TelemetryRecord): string {
  return record.recordType === 'LogRecord'
    ? `log ${record.timeUnixNano} ${record.spanId} ${record.eventType} ${record.body}`
    : `span ${record.spanId}`;
}

function assigned(records: readonly LoggedRecord[]): InvocationAssigner {
  const assigner = new InvocationAssigner();
  for (const record of records) assigner.add(record, 0);
  return assigner;
}

/** Which command's records each invocation got. */
function commandsByInvocation(records: readonly LoggedRecord[]): Map<number | undefined, Set<string | undefined>> {
  const assigner = assigned(records);
  const found = new Map<number | undefined, Set<string | undefined>>();
  for (const logged of records) {
    const index = assigner.invocationIndexOf(logged);
    const commands = found.get(index) ?? new Set();
    found.set(index, commands.add(commandOf.get(keyOf(logged.record))));
  }
  return found;
}

function shuffled(records: readonly LoggedRecord[]): fc.Arbitrary<LoggedRecord[]> {
  return fc.shuffledSubarray([...records], { minLength: records.length, maxLength: records.length });
}

describe.each([
  ['their JSONL files', own],
  ['their OTLP bodies', fromOtlp('overlapping')],
])('two commands that overlap in one trace, told by %s', (_name, records) => {
  it('each get their own records and nothing of the other', () => {
    expect(commandsByInvocation(records)).toEqual(
      new Map([
        [1, new Set(['a'])],
        [2, new Set(['b'])],
      ]),
    );
  });

  it('each get their verdict: one succeeds, one stops by fail-fast', () => {
    const invocations = assigned(records).invocations.map((parts, index) =>
      summarizeInvocation(parts, index + 1, true),
    );
    expect(invocations).toMatchObject([
      {
        verdict: 'success',
        hasInvocationEnd: true,
        hasProcessEnd: true,
        isAmbiguous: false,
        parquetFile: 'telemetry.parquet',
      },
      {
        verdict: 'error',
        hasInvocationEnd: false,
        hasProcessEnd: true,
        isAmbiguous: false,
        parquetFile: 'telemetry-2.parquet',
      },
    ]);
    expect(invocations.map(({ outerParentSpanId }) => outerParentSpanId)).toEqual([
      '00f067aa0ba902b7',
      '00f067aa0ba902b7',
    ]);
    expect(invocations.reduce((sum, { recordCount }) => sum + recordCount, 0)).toBe(records.length);
  });

  it('get the same records in whatever order these come', () => {
    const partOf = (assigner: InvocationAssigner) => {
      const spanIds = assigner.invocations.map((parts) => parts.spanId);
      return records.map((record) => spanIds[(assigner.invocationIndexOf(record) ?? 0) - 1]);
    };
    const expected = partOf(assigned(records));
    fc.assert(
      fc.property(shuffled(records), (order) => {
        expect(partOf(assigned(order))).toEqual(expected);
      }),
      { numRuns: 60 },
    );
  });
});

it('keeps apart what came of two commands that were killed, or says that it cannot', () => {
  for (let bodyCount = 1; bodyCount < 18; bodyCount++) {
    const records = fromOtlp('overlapping', bodyCount);
    const { invocations } = assigned(records);
    const seen = new Set(records.map(({ record }) => commandOf.get(keyOf(record))));
    expect(invocations.length, `after ${bodyCount} bodies`).toBe(seen.size);
    for (const [index, commands] of commandsByInvocation(records)) {
      if (commands.size > 1) expect(invocations[(index ?? 0) - 1]?.isAmbiguous, `after ${bodyCount} bodies`).toBe(true);
    }
  }
});

it.each(['fail-fast', 'interrupted', 'build-mixed'])(
  'says the same of the run %s in whatever order its records come',
  (run) => {
    const records = fromOtlp(run);
    const sum = (order: readonly LoggedRecord[]) =>
      assigned(order).invocations.map((parts, index) => summarizeInvocation(parts, index + 1, true));
    const expected = sum(records);
    fc.assert(
      fc.property(shuffled(records), (order) => {
        expect(sum(order)).toEqual(expected);
      }),
      { numRuns: 30 },
    );
  },
);

it('are two commands still when a record of one comes by a later import', () => {
  const by = (logged: LoggedRecord, beganUnixMs: number) => ({
    ...logged,
    resource: asImported(UNKNOWN_RESOURCE, beganUnixMs),
  });
  const late = own.findIndex(({ record }) => record.eventType.endsWith('.QueryExecuted'));
  const records = own.map((logged, at) => by(logged, at === late ? 2_000 : 1_000));
  expect([...commandsByInvocation(records).values()]).toEqual([new Set(['a']), new Set(['b'])]);
});

it.each(['dbt-core', 'dbt', 'dbt-oss', 'melange'])(
  'knows an invocation by the message in which the engine calls itself %s',
  (name) => {
    const [first] = fromOtlp('overlapping').filter(({ record }) => record.attributes.text('action') === 'dbt-core');
    if (first?.record.recordType !== 'LogRecord') throw new Error('the engine does not name itself');
    const { line: _line, ...record } = first.record;
    const attributes = Attributes.of({ action: name, target: '2.0.11' });
    const { invocations } = assigned([{ ...first, record: { ...record, spanName: null, attributes } }]);
    expect(invocations.map(({ spanId }) => spanId)).toEqual([record.spanId]);
  },
);
