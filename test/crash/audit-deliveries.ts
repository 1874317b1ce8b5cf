import type { FlakyDelivery } from './flaky-receiver.js';

/** What a receiver got of events. */
export interface EventFigures {
  /** Events that there have to be. */
  readonly expectedCount: number;
  /** Of them, never taken by the receiver. */
  readonly missing: readonly string[];
  /** Came, and there is no such event. */
  readonly madeUp: readonly string[];
  /** Came under more than one id. */
  readonly withSeveralIds: readonly string[];
  /** Events of which two attempts were under way at the same time. */
  readonly overlapping: readonly string[];
}

/** What a receiver got of runs that succeeded, two events each. */
export interface DeliveryFigures extends EventFigures {
  /** Jobs whose events came in another order, by the first attempt of each. */
  readonly outOfOrder: readonly string[];
}

/** Compares what came with what has to. @param runs numbers of the runs of each job, in order */
export function auditDeliveries(
  got: readonly FlakyDelivery[],
  runs: ReadonlyMap<string, readonly string[]>,
): DeliveryFigures {
  return {
    ...auditEvents(got, new Set([...runs.values()].flatMap(keysOf))),
    outOfOrder: [...runs].flatMap(([job, own]) => {
      const firsts = new Set(got.filter(({ data }) => data.jobName === job).map(keyOf));
      return [...firsts].join() === keysOf(own).join() ? [] : [job];
    }),
  };
}

/** The same of any events. @param expected `<run id> <event type>` of those that there have to be */
export function auditEvents(got: readonly FlakyDelivery[], expected: ReadonlySet<string>): EventFigures {
  const taken = new Set(got.filter(({ isTaken }) => isTaken).map(keyOf));
  const ids = new Map<string, Set<string>>();
  for (const one of got) ids.set(keyOf(one), new Set([...(ids.get(keyOf(one)) ?? []), one.eventId]));
  return {
    expectedCount: expected.size,
    missing: [...expected].filter((key) => !taken.has(key)),
    madeUp: [...ids.keys()].filter((key) => !expected.has(key)),
    withSeveralIds: [...ids].filter(([, own]) => own.size > 1).map(([key]) => key),
    overlapping: got.filter(({ isOverlapping }) => isOverlapping).map(keyOf),
  };
}

function keysOf(runIds: readonly string[]): readonly string[] {
  return runIds.flatMap((id) => [`${id} job.run.started`, `${id} job.run.completed`]);
}

function keyOf({ data, eventType }: FlakyDelivery): string {
  return `${data.runId} ${eventType}`;
}
