import type { Acknowledged } from './load.js';
import { traceIdOf } from './load-ids.js';

/** What a run has to have after everything was acknowledged. */
export interface ExpectedRun {
  readonly traceId: string;
  readonly sample: string;
  readonly verdicts: readonly string[];
  readonly spanKeys: ReadonlySet<number>;
  /** How many log records there are of each `<span id> <time>`. */
  readonly logs: ReadonlyMap<string, number>;
}

/** Sums up what was acknowledged, a run at a time. */
export function expectedRuns(acknowledged: readonly Acknowledged[]): readonly ExpectedRun[] {
  const runs = new Map<number, ExpectedRun & { spanKeys: Set<number>; logs: Map<string, number> }>();
  for (const { run, body } of acknowledged) {
    const { runNumber, template, verdicts } = run;
    const expected = runs.get(runNumber) ?? {
      traceId: traceIdOf(runNumber).toString('hex'),
      sample: template.sample,
      verdicts: [...verdicts].sort(),
      spanKeys: new Set<number>(),
      logs: new Map<string, number>(),
    };
    runs.set(runNumber, expected);
    for (const key of body.spanKeys) expected.spanKeys.add(key);
    for (const key of body.logKeys) expected.logs.set(key, (expected.logs.get(key) ?? 0) + 1);
  }
  return [...runs.values()];
}
