import { describe, expect, it } from 'vitest';
import { CommandSteps } from '../../../src/exec/command-steps.js';
import { UNKNOWN_RESOURCE } from '../../../src/record/attributes.js';
import type { RecordBatch } from '../../../src/record/record-batch.js';
import { parseTraceId, type TelemetryRecord, toUnixMs } from '../../../src/record/telemetry-record.js';
import { stepStart } from '../../contract/step-registry.contract.js';
import { sampleDeliveriesOfRecords } from '../../fake/sample-deliveries.js';
import { SENT_SAMPLES, SMALL_SAMPLES, sampleRecords } from '../../fake/sample-run.js';

/** Records of a trace. @param stepId that their resource names; `null` for none */
function batch(number: number, stepId: string | null = null) {
  const traceId = parseTraceId(String(number).padEnd(32, 'a'));
  if (traceId === undefined) throw new Error(`${number} makes no trace id`);
  const attributes = stepId === null ? {} : { 'run_bridge.step.id': stepId };
  return { traceId, resource: { ...UNKNOWN_RESOURCE, attributes }, records: [] };
}

/** What happened, in order. */
function tracked() {
  const happened: string[] = [];
  const registry = {
    async register({ stepId, runOf }: { readonly stepId: string; readonly runOf?: string }) {
      happened.push(`${stepId} begins, of the run of ${runOf}`);
      return {
        runId: 1,
        stepIndex: 1,
        job: 'adhoc',
        reason: null,
        accountId: 10_001,
        jobId: 1,
        projectId: 1,
        environmentId: 1,
      };
    },
    async attach(stepId: string, traceId: string) {
      happened.push(`${stepId} has ${traceId[0]}`);
    },
    async end(stepId: string, { kind }: { readonly kind: string }) {
      happened.push(`${stepId} ends: ${kind}`);
    },
  };
  const consumer = {
    async consume({ batches }: { readonly batches: readonly ReturnType<typeof batch>[] }) {
      for (const { traceId, resource } of batches) {
        happened.push(`${traceId[0]} of ${resource.attributes['run_bridge.step.id']}`);
      }
    },
  };
  const steps = new CommandSteps(async () => ({ consumer: consumer as never, registry }), stepStart('s', {}), '');
  return { happened, registry, steps };
}

it('makes the second trace of a command a step of the same run, registered before its records, which name it', async () => {
  const { happened, registry, steps } = tracked();
  await steps.consume({ batches: [batch(1)], passthrough: [] });
  await steps.consume({ batches: [batch(2), batch(1)], passthrough: [] });
  await steps.consume({ batches: [batch(2)], passthrough: [] });
  const second = 's.2aaaaaaaaaaaaaaa';
  expect(happened).toEqual([
    '1 of s',
    `${second} begins, of the run of s`,
    `2 of ${second}`,
    '1 of s',
    `2 of ${second}`,
  ]);
  happened.length = 0;
  await steps.end(registry, { kind: 'exited', exitCode: 0 }, 2_000);
  expect(happened).toEqual([`${second} begins, of the run of s`, 's ends: within', `${second} ends: exited`]);
});

it('names the step in records that name none, and in those that name the command alone', async () => {
  const { happened, steps } = tracked();
  await steps.consume({ batches: [batch(1), batch(1, 's'), batch(2, 's')], passthrough: [] });
  const second = 's.2aaaaaaaaaaaaaaa';
  expect(happened).toEqual(['1 of s', '1 of s', `${second} begins, of the run of s`, `2 of ${second}`]);
});

it('says at the end of each trace whose it is, once: another sender may have brought its records first', async () => {
  const { happened, registry, steps } = tracked();
  await steps.consume({ batches: [batch(1)], passthrough: [] });
  happened.length = 0;
  await steps.attach(registry);
  await steps.attach(registry);
  expect(happened).toEqual(['s has 1']);
});

it("adds what OTEL_RESOURCE_ATTRIBUTES says and the engine's resource does not", async () => {
  const taken: unknown[] = [];
  const consumer = {
    async consume({ batches }: { readonly batches: readonly RecordBatch[] }) {
      for (const one of batches) taken.push(one.resource.attributes);
    },
  };
  const variable =
    'team=shop, service.version = 1 ,,=none,run_bridge.step.id=outer,note=a=b%20c,telemetry.sdk.language=python';
  const { registry } = tracked();
  const steps = new CommandSteps(async () => ({ consumer, registry }), stepStart('s', {}), variable);
  const resource = { ...UNKNOWN_RESOURCE, attributes: { 'service.name': 'dbt', 'service.version': '2.0.0' } };
  await steps.consume({ batches: [{ ...batch(1), resource }], passthrough: [] });
  const own = { 'service.name': 'dbt', 'service.version': '2.0.0', 'run_bridge.step.id': 's' };
  expect(taken).toEqual([{ team: 'shop', note: 'a=b%20c', ...own }]);
});

it('leaves records alone that name a step of another command, and ends a command without any', async () => {
  const { happened, registry, steps } = tracked();
  await steps.consume({ batches: [batch(1, 'other')], passthrough: [] });
  await steps.end(registry, { kind: 'exited', exitCode: 0 }, 2_000);
  expect([happened, steps.steps]).toEqual([['1 of other', 's ends: exited'], []]);
});

it.each([
  ['dbt build', true],
  ['/venv/bin/dbt build', true],
  ['make all', false],
])('of %s the end is that of the engine by its telemetry: %s', async (command, isEngine) => {
  const records = sampleRecords('build-clean');
  const ends: number[] = [];
  const registry = {
    ...tracked().registry,
    end: async (_id: string, _kind: unknown, unixMs: number) => void ends.push(unixMs),
  };
  const start = { ...stepStart('s', {}), command: command.split(' ') };
  const steps = new CommandSteps(async () => ({ consumer: { async consume() {} }, registry }), start, '');
  const traceId = records[0]?.traceId;
  if (traceId === undefined) throw new Error('no record');
  await steps.consume({ batches: [{ traceId, resource: UNKNOWN_RESOURCE, records }], passthrough: [] });
  const exitedUnixMs = Number.MAX_SAFE_INTEGER;
  await steps.end(registry, { kind: 'exited', exitCode: 0 }, exitedUnixMs);
  const lastUnixMs = Math.max(
    ...records.map((record) => (record.recordType === 'SpanEnd' ? toUnixMs(record.endTimeUnixNano) : 0)),
  );
  expect(ends).toEqual([isEngine ? lastUnixMs : exitedUnixMs]);
});

describe('engine commands in one trace', () => {
  /** Hands batches over, each by itself. @returns which spans each step has, and what was said of the steps */
  async function divided(batches: Iterable<RecordBatch>) {
    const spans = new Map<unknown, Set<string | null>>();
    const said: string[] = [];
    const registry = {
      async register({ stepId }: { readonly stepId: string }) {
        said.push(`${stepId} begins`);
        return {
          runId: 1,
          stepIndex: 1,
          job: 'adhoc',
          reason: null,
          accountId: 10_001,
          jobId: 1,
          projectId: 1,
          environmentId: 1,
        };
      },
      async attach() {},
      async end(stepId: string, { kind }: { readonly kind: string }, endedUnixMs: number) {
        said.push(`${stepId} ends: ${kind}, ${endedUnixMs}`);
      },
    };
    const consumer = {
      async consume({ batches: own }: { readonly batches: readonly RecordBatch[] }) {
        for (const { resource, records } of own) {
          const of = spans.get(resource.attributes['run_bridge.step.id']) ?? new Set();
          spans.set(resource.attributes['run_bridge.step.id'], of);
          for (const { spanId } of records) of.add(spanId);
        }
      },
    };
    const steps = new CommandSteps(async () => ({ consumer, registry }), stepStart('s', {}), '');
    for (const one of batches) await steps.consume({ batches: [one], passthrough: [] });
    await steps.attach(registry);
    return { spans, said, steps, registry };
  }
  const resource = UNKNOWN_RESOURCE;
  const inTraceOf = ([first]: readonly TelemetryRecord[], records: readonly TelemetryRecord[], shiftNano = 0n) =>
    records.map(
      (record): TelemetryRecord => ({
        ...record,
        traceId: first?.traceId ?? record.traceId,
        ...('startTimeUnixNano' in record && { startTimeUnixNano: record.startTimeUnixNano + shiftNano }),
        ...('endTimeUnixNano' in record && { endTimeUnixNano: record.endTimeUnixNano + shiftNano }),
        ...('timeUnixNano' in record && { timeUnixNano: record.timeUnixNano + shiftNano }),
      }),
    );
  const spansOf = (records: readonly TelemetryRecord[]) => new Set(records.map(({ spanId }) => spanId));
  const oneByOne = (records: readonly TelemetryRecord[]) =>
    records.map((record) => ({ traceId: record.traceId, resource, records: [record] }));
  const processOf = (records: readonly TelemetryRecord[]) => records[0]?.spanId;

  const joined = sampleRecords('joined');
  const failed = sampleRecords('test-command');
  const [first, last] = [failed[0], joined.at(-1)];
  const begin = first?.recordType === 'SpanStart' ? first.startTimeUnixNano : 0n;
  const end = last?.recordType === 'SpanEnd' ? last.endTimeUnixNano : 0n;
  /** Some 70 ms after the first one, as in a script. */
  const next = inTraceOf(joined, failed, end - begin + 70_000_000n);

  it('are steps of their own, each with all its spans; one ends when its end was read and the next has begun', async () => {
    const { spans, said, steps } = await divided(oneByOne([...joined, ...next]));
    const second = `s.${processOf(next)}`;
    expect(spans).toEqual(
      new Map([
        ['s', spansOf(joined)],
        [second, spansOf(next)],
      ]),
    );
    expect(said).toEqual([`${second} begins`, `s ends: within, ${end / 1_000_000n}`]);
    expect(steps.steps.map(({ processSpanId }) => processSpanId)).toEqual([processOf(joined), processOf(next)]);
  });

  it('say no end twice, and the last one ends with the command', async () => {
    const { said, steps, registry } = await divided(oneByOne([...joined, ...next]));
    said.length = 0;
    await steps.end(registry, { kind: 'exited', exitCode: 1 }, 9_000);
    const second = `s.${processOf(next)}`;
    expect(said).toEqual([`${second} begins`, `${second} ends: exited, 9000`]);
  });

  it('are distinguished side by side, in the order of their file', async () => {
    const overlapping = sampleRecords('overlapping');
    const at = overlapping.findIndex(({ spanId }) => spanId === '60a6b9b6f1b01207');
    const [one, other] = [overlapping.slice(0, at), overlapping.slice(at)];
    const mixed = Array.from({ length: Math.max(one.length, other.length) }, (_, index) => [
      ...one.slice(index, index + 1),
      ...other.slice(index, index + 1),
    ]).flat();
    const { spans } = await divided(oneByOne(mixed));
    expect(spans).toEqual(
      new Map([
        ['s', spansOf(one)],
        ['s.60a6b9b6f1b01207', spansOf(other)],
      ]),
    );
  });

  it('are distinguished by their times over OTLP, where parents come after their children', async () => {
    const received = [...sampleDeliveriesOfRecords('joined')].flatMap(({ batches }) => batches);
    const later = [...sampleDeliveriesOfRecords('test-command')].flatMap(({ batches }) => batches);
    const shifted = later.map((one) => {
      const records = inTraceOf(joined, one.records, end - begin + 70_000_000n);
      return { ...one, traceId: joined[0]?.traceId ?? one.traceId, records };
    });
    const { spans, steps } = await divided([...received, ...shifted].map((one) => ({ ...one, resource })));
    expect([...spans.values()]).toEqual([spansOf(joined), spansOf(next)]);
    expect(steps.steps.map(({ processSpanId }) => processSpanId)).toEqual([processOf(joined), processOf(next)]);
  });

  it.each(SMALL_SAMPLES.filter((name) => name !== 'overlapping'))(
    'are one step in %s, of one engine command',
    async (name) => {
      expect([...(await divided(oneByOne(sampleRecords(name)))).spans.keys()]).toEqual(['s']);
      if (!SENT_SAMPLES.includes(name)) return;
      const received = [...sampleDeliveriesOfRecords(name)].flatMap(({ batches }) => batches);
      const { spans } = await divided(received.map((one) => ({ ...one, resource })));
      expect([...spans.keys()]).toEqual(['s']);
    },
  );
});
