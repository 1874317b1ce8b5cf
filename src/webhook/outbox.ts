import { randomBytes } from 'node:crypto';
import type { Transaction } from 'kysely';
import { type Clock, systemClock } from '../core/clock.js';
import { slices } from '../core/lists.js';
import { endsFailures, hasSameCommands } from '../run/measures/recovery.js';
import { nextIds } from '../storage/database.js';
import { listUnnotified, markNotified, markStepsNotified, type RunObserver } from '../storage/execution-status.js';
import { type CatalogRun, commandLinesByRun, RunCatalog, type RunError } from '../storage/run-catalog.js';
import { isFinal, RUN_STATUS, type RunStatus, type StateTables } from '../storage/state-tables.js';
import { DEFAULT_JOB } from '../storage/steps.js';
import { commonFactsOf, MAX_RUNS_BEFORE, type MissingArtifactFacts, type RunFacts } from './event.js';
import {
  asksForNodes,
  closesIncident,
  isForPeople,
  type WebhookEventType,
  type WebhookSettings,
  type WebhookTransition,
  type WebhookVerdict,
} from './subscription.js';
import { addEvents, ksuid, type NewEvent, SUBSCRIPTION_ROWS, type WebhookTables } from './tables.js';

/** How events are made. */
export interface OutboxOptions {
  readonly clock: Clock;
  /** Unique text of 27 letters and digits. */
  readonly newKsuid: (nowUnixMs: number) => string;
  /** Runs are marked as notified, and no events are made: for an import. */
  readonly isSilent: boolean;
}

/** The defaults: whichever program opens the state keeps the outbox complete. */
export const OUTBOX_DEFAULTS: OutboxOptions = {
  clock: systemClock,
  newKsuid: (nowUnixMs) => ksuid(nowUnixMs, randomBytes),
  isSilent: false,
};

/** Rows asked for, or written, by one statement. */
const ROWS_PER_STATEMENT = 500;
/** Events wait so long, in milliseconds, while a command is running whose telemetry this run may turn out to be. */
const DOUBTFUL_MS = 3_000;
/** Also the wait for a step that the telemetry names and that is not registered yet. */
const EXPECTED_MS = 10_000;

/** Missing artifacts that an event names. */
const MAX_MISSING_PATHS = 20;

/** A run with events to be made. */
interface DueRun {
  readonly id: number;
  readonly accountId: number;
  readonly types: readonly WebhookEventType[];
  /** The new value of `executions.notified`. */
  readonly notified: number;
  /** Its first command that errored; `null` for none. */
  readonly error: RunError | null;
  /** Its command was not registered: it may still turn out to be a step of another run. */
  readonly isUnregistered: boolean;
  /** Its telemetry names a step that is not registered yet. */
  readonly isStepExpected: boolean;
}

/** Writes an event for each subscription that matches, in the transaction that changes its run: neither is there without the other. */
export class WebhookOutbox implements RunObserver {
  private readonly options: OutboxOptions;
  private listener: () => void = () => {};

  constructor(options: Partial<OutboxOptions> = {}) {
    this.options = { ...OUTBOX_DEFAULTS, ...options };
  }

  /** One listener at a time: it is called when events were written, before they are committed. */
  listen(listener: () => void): void {
    this.listener = listener;
  }

  /** Each event of a run is made once. */
  async onChanged(transaction: Transaction<StateTables>, runIds: readonly number[]): Promise<void> {
    for (const some of slices(runIds, ROWS_PER_STATEMENT)) {
      const due = await findDueRuns(transaction, some);
      if (due.length === 0) continue;
      for (const notified of new Set(due.map((one) => one.notified))) {
        const ids = due.filter((one) => one.notified === notified).map(({ id }) => id);
        await markNotified(transaction, ids, notified);
      }
      if (!this.options.isSilent) await this.write(transaction, due);
    }
  }

  /** A run that ended before its import began has no events. */
  async onImported(
    transaction: Transaction<StateTables>,
    stepIds: readonly string[],
    isRecent: boolean,
  ): Promise<void> {
    for (const some of slices(stepIds, ROWS_PER_STATEMENT)) {
      await markStepsNotified(transaction, some, SUPPRESSED, !isRecent);
    }
  }

  /** Removes the events of which nothing was sent. */
  async onRemoved(transaction: Transaction<StateTables>, runId: number): Promise<void> {
    // Locks the counter before the events, in the same order as the writer of attempt results.
    await nextIds(transaction, 'webhook', 0);
    await transaction
      .withTables<WebhookTables>()
      .deleteFrom('webhook_events')
      .where('run_id', '=', runId)
      .where('attempt_count', '=', 0)
      .execute();
  }

  private async write(transaction: Transaction<StateTables>, due: readonly DueRun[]): Promise<void> {
    const webhooks = transaction.withTables<WebhookTables>();
    const accountIds = [...new Set(due.map(({ accountId }) => accountId))];
    const rows = await webhooks
      .selectFrom('webhook_subscriptions')
      .selectAll()
      .where('account_id', 'in', accountIds)
      .orderBy('created_unix_ms')
      .orderBy('id')
      .execute();
    if (rows.length === 0) return;
    const subscriptions = rows.map((row) => SUBSCRIPTION_ROWS.toItem(row));
    const nowUnixMs = this.options.clock.nowUnixMs();
    const found: NewEvent[] = [];
    const doubtfulMs = (await new RunCatalog(transaction).isStepRunning()) ? DOUBTFUL_MS : 0;
    for (const one of due) {
      const run = await new RunCatalog(transaction).findRun(one.accountId, one.id);
      if (run === undefined) continue;
      const startedUnixMs = await new RunCatalog(transaction).firstStartOf(run);
      const waitMs = one.isStepExpected ? EXPECTED_MS : one.isUnregistered ? doubtfulMs : 0;
      const transition = await transitionOf(transaction, run, one.types);
      const missing = run.missingArtifactCount === 0 ? undefined : await missingArtifacts(transaction, run);
      for (const type of one.types) {
        const facts = {
          ...factsOf({ ...run, startedUnixMs }, type, one.error, nowUnixMs),
          ...(type === 'job.run.completed' && missing !== undefined && { missingArtifacts: missing }),
          ...(type !== 'job.run.started' && transition !== null && { transition }),
        };
        for (const subscription of subscriptions) {
          if (subscription.accountId !== run.accountId || !matchesRun(subscription, type, facts)) continue;
          found.push({ subscription, eventType: type, facts, waitMs });
        }
      }
    }
    if (found.length === 0) return;
    await addEvents(webhooks, found, nowUnixMs, this.options.newKsuid);
    this.listener();
  }
}

async function findDueRuns(
  transaction: Transaction<StateTables>,
  runIds: readonly number[],
): Promise<readonly DueRun[]> {
  const rows = await listUnnotified(transaction, runIds, ALL_NOTIFIED);
  const errors = await new RunCatalog(transaction).errorsOf(
    rows.filter(({ notified }) => (notified & 2) === 0).map(({ id }) => id),
  );
  return rows.flatMap((row) => {
    const { types, notified } = dueEvents({
      ...{ status: row.status, notified: row.notified, stepCount: row.step_count },
      isCancelled: row.cancelled_unix_ms !== null,
      hasError: errors.has(row.id),
    });
    if (notified === row.notified) return [];
    const doubts = { isUnregistered: Boolean(row.is_unregistered), isStepExpected: Boolean(row.is_step_expected) };
    const error = errors.get(row.id) ?? null;
    return [{ id: row.id, accountId: row.account_id, types, notified, error, ...doubts }];
  });
}

async function missingArtifacts(
  transaction: Transaction<StateTables>,
  { accountId, id, missingArtifactCount }: CatalogRun,
): Promise<MissingArtifactFacts> {
  const steps = await new RunCatalog(transaction).stepsOf(accountId, [id]);
  const incomplete = steps.flatMap(({ artifacts }) => (artifacts?.state === 'incomplete' ? [artifacts] : []));
  return {
    count: missingArtifactCount,
    paths: incomplete.flatMap(({ missing }) => missing).slice(0, MAX_MISSING_PATHS),
    reason: incomplete[0]?.reason ?? '',
  };
}

/**
 * Returns how a run that has ended, or errored, differs from those before it; `null` where it does not. A success behind a failure may be a
 * recovery, and `RecoveryReader` says whether it is; a success that executed nothing ends no failure.
 */
async function transitionOf(
  transaction: Transaction<StateTables>,
  run: CatalogRun,
  types: readonly WebhookEventType[],
): Promise<WebhookTransition | null> {
  const status = types.includes('job.run.errored') ? RUN_STATUS.error : run.status;
  if (status !== RUN_STATUS.error && status !== RUN_STATUS.success) return null;
  const before = await new RunCatalog(transaction).runsBefore(run, MAX_RUNS_BEFORE);
  if (status === RUN_STATUS.success) return before.some((one) => one.status === RUN_STATUS.error) ? 'recovery' : null;
  const ids = [run.id, ...before.map(({ id }) => id)];
  const commandLines = await commandLinesByRun(new RunCatalog(transaction), run.accountId, ids);
  const current = { commandLines: commandLines(run.id) };
  const isOfJob = run.job.name !== DEFAULT_JOB;
  const last = before
    .map(({ id, status }) => ({ status, commandLines: commandLines(id) }))
    .filter((one) => isOfJob || hasSameCommands(one, current))
    .find((one) => one.status === RUN_STATUS.error || endsFailures(one, current));
  return last?.status === RUN_STATUS.error ? null : 'first_failure';
}

/** Times are those of the run, whenever the event is made: an imported run gives the same ones. */
function factsOf(
  run: CatalogRun & { readonly startedUnixMs: number },
  type: WebhookEventType,
  error: RunError | null,
  nowUnixMs: number,
): RunFacts {
  const isErrored = type === 'job.run.errored';
  const ownStatus = isErrored ? RUN_STATUS.error : run.status;
  return {
    ...commonFactsOf(run),
    status: type === 'job.run.started' ? RUN_STATUS.running : ownStatus,
    statusMessage:
      type === 'job.run.started' ? null : (run.statusMessage ?? (isErrored ? (error?.message ?? null) : null)),
    startedUnixMs: run.startedUnixMs,
    finishedUnixMs: type === 'job.run.completed' ? run.finishedUnixMs : null,
    erroredUnixMs: isErrored
      ? Math.min(error?.erroredUnixMs ?? nowUnixMs, run.finishedUnixMs ?? Number.POSITIVE_INFINITY)
      : null,
  };
}

/** Bits of `executions.notified`. */
const BITS: Readonly<Record<WebhookEventType, number>> = {
  'job.run.started': 1,
  'job.run.errored': 2,
  'job.run.completed': 4,
};
/** Every event of the run was made. */
const ALL_NOTIFIED = 7;
/** Bit of a run that ended before its import began: it has no events. */
export const SUPPRESSED = 8;

/** The state of a run. */
interface RunProgress {
  readonly status: RunStatus;
  /** `executions.notified`: sum of the bits of the events that were created. */
  readonly notified: number;
  readonly stepCount: number;
  readonly isCancelled: boolean;
  /** Whether one of its commands has errored, before the run ends. */
  readonly hasError: boolean;
}

/** Returns the events that are due for a run, in order, and the new value of `executions.notified`. Events that can no longer happen count as created. */
function dueEvents(run: RunProgress): { readonly types: readonly WebhookEventType[]; readonly notified: number } {
  if ((run.notified & SUPPRESSED) !== 0) return { types: [], notified: run.notified };
  const isOver = isFinal(run.status);
  const isErrored = isOver ? run.status === RUN_STATUS.error : run.hasError && !run.isCancelled;
  const due: readonly (readonly [WebhookEventType, boolean])[] = [
    ['job.run.started', run.stepCount > 0],
    ['job.run.errored', isErrored],
    ['job.run.completed', isOver],
  ];
  const types = due.filter(([type, isDue]) => isDue && (run.notified & BITS[type]) === 0).map(([type]) => type);
  const notified = isOver ? ALL_NOTIFIED : types.reduce((sum, type) => sum | BITS[type], run.notified);
  return { types, notified };
}

/** Returns whether a subscription matches an event. */
export function matchesRun(
  { kind, eventTypes, jobIds, filter }: Pick<WebhookSettings, 'kind' | 'eventTypes' | 'jobIds' | 'filter'>,
  eventType: WebhookEventType,
  facts: RunFacts,
): boolean {
  const { environments, projects, statuses, transitions, verdicts } = filter;
  if (jobIds.length > 0 && !jobIds.includes(facts.jobId)) return false;
  if (environments.length > 0 && !environments.includes(facts.environmentName)) return false;
  if (projects.length > 0 && !projects.includes(facts.projectName)) return false;
  if (closesIncident(kind, eventType, facts.status)) return true;
  if (!eventTypes.includes(eventType)) return false;
  if (eventType === 'job.run.started') return transitions.length === 0 && !asksForNodes(filter);
  // People read of a failed run once, when it errors.
  const isAlreadyNotified = eventTypes.includes('job.run.errored') && facts.status === RUN_STATUS.error;
  if (eventType === 'job.run.completed' && isAlreadyNotified && isForPeople(kind)) return false;
  if (verdicts.length > 0 && !verdicts.some((verdict) => mayHave(facts, verdict))) return false;
  if (statuses.length > 0 && !statuses.includes(facts.status)) return false;
  return transitions.length === 0 || (facts.transition !== undefined && transitions.includes(facts.transition));
}

/** Returns whether a run has a verdict, as far as it is known here: whether one that succeeded has warnings is known only later. */
function mayHave({ status, transition }: RunFacts, verdict: WebhookVerdict): boolean {
  switch (verdict) {
    case 'failed':
      return status === RUN_STATUS.error;
    case 'canceled':
      return status === RUN_STATUS.cancelled;
    case 'recovered':
      return transition === 'recovery';
    case 'success':
    case 'warned':
      return status === RUN_STATUS.success;
  }
}
