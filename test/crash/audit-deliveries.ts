import type { FlakyDelivery } from './flaky-receiver.js';

/** What a receiver got of runs that succeeded. */
export interface DeliveryFigures {
  /** Events that there have to be: two a run. */
  readonly expectedCount: number;
  /** Of them, never taken by the receiver. */
  readonly missing: readonly string[];
  /** Came, and there is no such event. */
  readonly madeUp: readonly string[];
  /** Came under more than one id. */
  readonly withSeveralIds: readonly string[];
  /** Jobs whose events came in another order, by the first attempt of each. */
  readonly outOfOrder: readonly string[];
  /** Events of which two attempts were under way at the same time. */
  readonly overlapping: readonly string[];
}

/** Compares what came with what has to. @param runs numbers of the runs of each job, in order */
export function auditDeliveries(
  got: readonly FlakyDelivery[],
  runs: ReadonlyMap<string, readonly string[]>,
): DeliveryFigures {
  const taken = new Set(got.filter(({ isTaken }) => isTaken).map(keyOf));
  const ids = new Map<string, Set<string>>();
  for (const one of got) ids.set(keyOf(one), new Set([...(ids.get(keyOf(one)) ?? []), one.eventId]));
  const expected = new Set([...runs.values()].flatMap(keysOf));
  return {
    expectedCount: expected.size,
    missing: [...expected].filter((key) => !taken.has(key)),
    madeUp: [...ids.keys()].filter((key) => !expected.has(key)),
    withSeveralIds: [...ids].filter(([, own]) => own.size > 1).map(([key]) => key),
    outOfOrder: [...runs].flatMap(([job, own]) => {
      const firsts = new Set(got.filter(({ data }) => data.jobName === job).map(keyOf));
      return [...firsts].join() === keysOf(own).join() ? [] : [job];
    }),
    overlapping: got.filter(({ isOverlapping }) => isOverlapping).map(keyOf),
  };
}

function keysOf(runIds: readonly string[]): readonly string[] {
  return runIds.flatMap((id) => [`${id} job.run.started`, `${id} job.run.completed`]);
}

function keyOf({ data, eventType }: FlakyDelivery): string {
  return `${data.runId} ${eventType}`;
}
