import {
  WEBHOOK_VERDICTS,
  type WebhookEventType,
  type WebhookTransition,
  type WebhookVerdict,
} from './subscription.js';

// When a subscription sends something, as people choose it: one question in place of event types, verdicts, statuses and transitions,
// of which some combinations say the same, and others let nothing through.

/** What happens to a run: it starts, or ends with a verdict. */
export const OCCASIONS = ['started', 'failed', 'recovered', 'warned', 'success', 'canceled'] as const;
export type Occasion = (typeof OCCASIONS)[number];

export const OCCASION_WORDS: Readonly<Record<Occasion, string>> = {
  started: 'a run starts',
  failed: 'a run fails',
  recovered: 'a run succeeds after one that failed',
  warned: 'a run succeeds with warnings',
  success: 'a run succeeds without warnings',
  canceled: 'a run is canceled',
};
export const CHANGE_WORDS = 'a job begins to fail, and when it works again';

/** What a person chose. `kept` is a combination of the API that no choice makes. */
export type When =
  | { readonly kind: 'each'; readonly occasions: readonly Occasion[]; readonly isAtOnce: boolean }
  | { readonly kind: 'changes'; readonly occasions?: undefined; readonly isAtOnce: boolean }
  | { readonly kind: 'kept'; readonly occasions?: undefined; readonly isAtOnce?: undefined };

/** The settings that say when something is sent, by the API's names. */
export interface AskedEvents {
  readonly event_types: readonly WebhookEventType[];
  readonly verdicts: readonly WebhookVerdict[];
  readonly statuses: readonly string[];
  readonly transitions: readonly WebhookTransition[];
}

/** Returns the settings of a choice; with `isAtOnce` a failure is reported before the run is over as well. */
export function askedBy(when: Exclude<When, { readonly kind: 'kept' }>): AskedEvents {
  if (when.kind === 'changes') {
    const event_types = [...(when.isAtOnce ? (['job.run.errored'] as const) : []), 'job.run.completed' as const];
    return { event_types, verdicts: [], statuses: [], transitions: ['first_failure', 'recovery'] };
  }
  const { occasions, isAtOnce } = when;
  const verdicts = WEBHOOK_VERDICTS.filter((one) => occasions.includes(one));
  const isErrored = isAtOnce && verdicts.includes('failed');
  const isCompleted = verdicts.some((one) => one !== 'failed' || !isErrored);
  // All runs that end have one of the others.
  const isAny = WEBHOOK_VERDICTS.every((one) => one === 'recovered' || verdicts.includes(one));
  return {
    event_types: [
      ...(occasions.includes('started') ? (['job.run.started'] as const) : []),
      ...(isErrored ? (['job.run.errored'] as const) : []),
      ...(isCompleted ? (['job.run.completed'] as const) : []),
    ],
    verdicts: isAny || !isCompleted ? [] : verdicts,
    statuses: [],
    transitions: [],
  };
}

/** Returns the choice that makes such settings. */
export function whenOf(asked: AskedEvents): When {
  const { event_types, verdicts } = asked;
  const isAtOnce = event_types.includes('job.run.errored');
  const unnamed: readonly WebhookVerdict[] = event_types.includes('job.run.completed')
    ? WEBHOOK_VERDICTS
    : isAtOnce
      ? ['failed']
      : [];
  const ended = verdicts.length > 0 ? verdicts : unnamed;
  const started: readonly Occasion[] = event_types.includes('job.run.started') ? ['started'] : [];
  const choices = [
    { kind: 'changes', isAtOnce },
    { kind: 'each', occasions: [...started, ...ended], isAtOnce },
  ] as const;
  return choices.find((one) => isSame(askedBy(one), asked)) ?? { kind: 'kept' };
}

function isSame(one: AskedEvents, other: AskedEvents): boolean {
  const sets = ({ event_types, verdicts, statuses, transitions }: AskedEvents) =>
    JSON.stringify([event_types, verdicts, statuses, transitions].map((list) => [...list].sort()));
  return sets(one) === sets(other);
}
