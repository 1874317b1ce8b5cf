import { describe, expect, it } from 'vitest';
import type { LoggedRecord } from '../../../src/log/record-log.js';
import { InvocationAssigner } from '../../../src/run/invocation-assigner.js';
import { summarizeInvocation } from '../../../src/run/open-run.js';
import type { InvocationSummary } from '../../../src/run/verdict.js';
import { LARGE_SAMPLES } from '../../tool/large-samples.js';
import { bodyCount, fromJsonl, fromOtlp } from './logged-samples.js';

function invocationsOf(records: readonly LoggedRecord[]): InvocationSummary[] {
  const assigner = new InvocationAssigner();
  for (const record of records) assigner.add(record, 0);
  return assigner.invocations.map((parts, index) => summarizeInvocation(parts, index + 1, true));
}

const none = { success: 0, warned: 0, failed: 0, error: 0, canceled: 0, skipped: 0, unfinished: 0 };

/** Verdicts by the samples' exit codes and stories; node counts by the engine's own summaries (less hooks), after the truth. */
const expected = [
  { run: 'build-clean', verdict: 'success', nodes: { success: 13, skipped: 1 }, message: null },
  { run: 'joined', verdict: 'success', nodes: { success: 13, skipped: 1 }, message: null },
  { run: 'parse', verdict: 'success', nodes: {}, message: null },
  {
    run: 'build-mixed',
    verdict: 'error',
    nodes: { success: 13, warned: 1, failed: 2, error: 1, skipped: 4 },
    message: 'Executed with errors',
  },
  {
    run: 'build-mixed-fusion',
    verdict: 'error',
    nodes: { success: 13, warned: 1, failed: 2, error: 1, skipped: 4 },
    message: 'Executed with errors',
  },
  {
    run: 'fail-fast',
    verdict: 'error',
    nodes: {},
    message: /^Stopped by fail-fast(?: or by somebody)? after unit_test.shop.ut_target.ut_wrong failed/,
  },
  {
    run: 'interrupted',
    verdict: 'canceled',
    nodes: { success: 13, warned: 1, failed: 2, error: 1, canceled: 2, skipped: 4 },
    message: 'Interrupted: 2 nodes canceled',
  },
  ...LARGE_SAMPLES.map((run) => ({
    run,
    verdict: 'error' as const,
    // 23 are skipped behind what failed, 45 are ephemeral.
    nodes: { success: 1084, failed: 10, error: 2, skipped: 68 },
    message: 'Executed with errors',
  })),
] as const;

describe.each(expected)('the sample $run', ({ run, verdict, nodes, message }) => {
  it.each([
    ['its JSONL file', fromJsonl(run)],
    ['its OTLP bodies', fromOtlp(run)],
  ])(`is one invocation with its verdict and node counts, told by %s`, (_name, records) => {
    const [invocation, ...others] = invocationsOf(records);
    expect(others).toEqual([]);
    expect(invocation).toMatchObject({ index: 1, verdict, isAmbiguous: false, hasProcessEnd: true });
    expect(invocation?.recordCount).toBe(records.length);
    if (Object.keys(nodes).length > 0) expect(invocation?.nodeCounts).toEqual({ ...none, ...nodes });
    if (message instanceof RegExp) expect(invocation?.statusMessage).toMatch(message);
    else expect(invocation?.statusMessage).toBe(message);
  });
});

it('tells the failed run of an older engine by what its metrics and nodes say', () => {
  const [invocation] = invocationsOf(fromJsonl('preview-120-failed'));
  expect(invocation).toMatchObject({
    verdict: 'error',
    statusMessage: 'Executed with errors',
    command: 'build',
    rawCommand: 'dbt build',
    totalErrors: 2,
    totalWarnings: 0,
    nodeCounts: { ...none, error: 1, failed: 1 },
  });
});

describe.each(['build-clean', 'build-mixed', 'fail-fast', 'interrupted', 'parse'])('a killed run (%s)', (run) => {
  it('is lost wherever its JSONL was cut off before an end', () => {
    const records = fromJsonl(run);
    const firstEnd = records.findIndex(
      ({ record }) => record.recordType === 'SpanEnd' && /\.(Invocation|Process)$/.test(record.eventType),
    );
    expect(firstEnd).toBeGreaterThan(50);
    for (let length = 1; length <= firstEnd; length += 7) {
      const invocations = invocationsOf(records.slice(0, length));
      expect(invocations.map(({ verdict }) => verdict)).toEqual(['lost']);
      expect(invocations[0]?.recordCount).toBe(length);
    }
  });

  it('is lost when its last OTLP bodies never came', () => {
    for (let count = 1; count < bodyCount(run); count++) {
      const records = fromOtlp(run, count);
      if (records.some(({ record }) => record.eventType.endsWith('.Process'))) continue;
      expect(invocationsOf(records).map(({ verdict }) => verdict)).toEqual(['lost']);
    }
  });
});

it('knows the command, its process and the outer parent of a command that joined a trace', () => {
  const [invocation] = invocationsOf(fromOtlp('joined'));
  expect(invocation).toMatchObject({
    spanId: 'd8a5e6af100b5efa',
    processSpanId: '03a976cdb439fc41',
    outerParentSpanId: 'b7ad6b7169203331',
    command: 'build',
    hasInvocationEnd: true,
    parquetFile: 'telemetry.parquet',
  });
});

it('knows the id of an invocation span that never came from its children', () => {
  const [invocation] = invocationsOf(fromOtlp('fail-fast'));
  expect(invocation).toMatchObject({ spanId: 'e6928bc6bee48d7b', hasInvocationEnd: false, command: null });
});
