import { traceIdOf } from './load-ids.js';
import type { PlannedRun } from './run-plan.js';
import type { LoadBody } from './run-template.js';

/** What a run has to have after everything was acknowledged. */
export interface ExpectedRun {
  readonly traceId: string;
  readonly sample: string;
  /** In alphabetical order. */
  readonly verdicts: readonly string[];
  readonly spanKeys: ReadonlySet<number>;
  /** How many log records there are of each `<span id> <time>`. */
  readonly logs: ReadonlyMap<string, number>;
}

/** What was acknowledged, summed up a run at a time. */
export class ExpectedRuns {
  private readonly runs = new Map<number, ExpectedRun & { spanKeys: Set<number>; logs: Map<string, number> }>();

  add({ runNumber, template, verdicts }: PlannedRun, body: LoadBody): void {
    const expected = this.runs.get(runNumber) ?? {
      traceId: traceIdOf(runNumber).toString('hex'),
      sample: template.sample,
      verdicts: [...verdicts].sort(),
      spanKeys: new Set<number>(),
      logs: new Map<string, number>(),
    };
    this.runs.set(runNumber, expected);
    for (const key of body.spanKeys) expected.spanKeys.add(key);
    for (const key of body.logKeys) expected.logs.set(key, (expected.logs.get(key) ?? 0) + 1);
  }

  get list(): readonly ExpectedRun[] {
    return [...this.runs.values()];
  }

  /** Every span of all runs, once. */
  get spans(): ReadonlyMap<number, number> {
    return new Map(this.list.flatMap((run) => [...run.spanKeys].map((key) => [key, 1] as const)));
  }

  /** Every log record of all runs. */
  get logs(): ReadonlyMap<string, number> {
    return new Map(this.list.flatMap((run) => [...run.logs]));
  }
}
