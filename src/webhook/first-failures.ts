import { randomBytes } from 'node:crypto';
import { type Clock, FixedDelayTask } from '../core/clock.js';
import type { Logger } from '../core/logger.js';
import { changeState } from '../storage/database.js';
import { type CatalogRun, RunCatalog } from '../storage/run-catalog.js';
import { RUN_STATUS, type StateDb } from '../storage/state-tables.js';
import { commonFactsOf, type EventSelection, NO_RUN, type RunFacts, type WebhookEvent } from './event.js';
import type { WebhookEventStore } from './event-store.js';
import { matchesRun, SUPPRESSED } from './outbox.js';
import type { EventSelector } from './selection.js';
import { isForPeople, type WebhookSubscription } from './subscription.js';
import { activeSubscriptions, addEvents, ksuid, type WebhookTables } from './tables.js';

/** What a watch for first failures works with. */
export interface FirstFailureDeps {
  readonly db: StateDb;
  readonly events: Pick<WebhookEventStore, 'ofRun'>;
  readonly selector: Pick<EventSelector, 'selectSoFar'>;
  readonly clock: Clock;
  readonly logger: Logger;
  /** Something was written. */
  readonly wake: () => void;
}

/** Between two looks, in milliseconds. */
const LOOK_MS = 15_000;
/** Runs under way that are looked at: those that began last. Their records are read on from where they were read to. */
const MAX_RUNS = 4;

/**
 * Notifies owners of the first of their nodes that fails while its run goes on, for subscriptions with a message for each owner. The rest
 * they get in one list, when the run is known to have failed (`EventSelector`).
 */
export class FirstFailureWatch {
  private readonly task: FixedDelayTask;

  constructor(private readonly deps: FirstFailureDeps) {
    this.task = new FixedDelayTask(
      LOOK_MS,
      deps.clock,
      () => this.look(),
      (error) => deps.logger.error({ error: String(error) }, 'failed to look for nodes that failed; retrying'),
    );
  }

  start(): void {
    this.task.start();
  }

  stop(): Promise<void> {
    return this.task.stop();
  }

  /** Looks once. @throws StoreError */
  async look(): Promise<void> {
    const { db } = this.deps;
    const subscriptions = (await activeSubscriptions(db)).filter(isNotifiedSoon);
    for (const accountId of new Set(subscriptions.map((one) => one.accountId))) {
      const { items } = await new RunCatalog(db).listRuns(accountId, {
        ...{ statuses: [RUN_STATUS.running], withoutNotified: SUPPRESSED },
        ...{ orderBy: 'created', isDescending: true, limit: MAX_RUNS, offset: 0 },
      });
      for (const run of items) {
        for (const one of subscriptions.filter((other) => other.accountId === accountId)) await this.notify(one, run);
      }
    }
  }

  private async notify(subscription: WebhookSubscription, run: CatalogRun): Promise<void> {
    const { db, events, selector, clock, wake } = this.deps;
    const nowUnixMs = clock.nowUnixMs();
    const startedUnixMs = run.dequeuedUnixMs ?? run.createdUnixMs;
    const common = { ...NO_RUN, ...commonFactsOf(run), status: RUN_STATUS.error, startedUnixMs };
    const facts: RunFacts = { ...common, erroredUnixMs: nowUnixMs, isGoingOn: true };
    if (!matchesRun(subscription, 'job.run.errored', facts)) return;
    // What cannot be read now is in the list at the end.
    const selections = await selector.selectSoFar(subscription, facts).catch(() => []);
    if (selections.length === 0) return;
    // Several processes look, and one after the other writes.
    const count = await changeState(
      db,
      async (transaction) => {
        const known = await events.ofRun(subscription.id, run.id, transaction);
        if (known.some(({ facts: of }) => of.isGoingOn !== true)) return 0;
        const fresh = selections.filter(({ owner }) => !known.some(isOf(owner)));
        const made = fresh.map((selection) => ({
          ...{ subscription, eventType: 'job.run.errored' as const },
          facts: { ...facts, selection },
        }));
        const webhooks = transaction.withTables<WebhookTables>();
        await addEvents(webhooks, made, nowUnixMs, (unixMs) => ksuid(unixMs, randomBytes));
        return made.length;
      },
      'webhook',
    );
    if (count > 0) wake();
  }
}

/** With `hold_repeats` all failures of an owner are compared with those of the last run, so they are notified of together. */
function isNotifiedSoon({ kind, isPerOwner, holdsRepeats }: WebhookSubscription): boolean {
  return isForPeople(kind) && isPerOwner && !holdsRepeats;
}

function isOf(owner: EventSelection['owner']): (event: Pick<WebhookEvent, 'facts'>) => boolean {
  return ({ facts }) => facts.selection?.owner === owner;
}
