import type { Clock } from '../core/clock.js';
import type { CatalogRun, RunCatalog } from '../storage/run-catalog.js';
import { RUN_STATUS } from '../storage/run-status.js';
import type { OutgoingEvent, RunFacts } from './event.js';
import { newWebhookSecret, type SecretBox, SecretBoxError, sealHeaders, sealUrl } from './secrets.js';
import { type SenderOf, type Sent, sendEvent } from './senders.js';
import type { WebhookEventType, WebhookSettings, WebhookState, WebhookSubscription } from './subscription.js';
import type { SubscriptionStore } from './subscription-store.js';

/** The settings of a subscription, as a caller gives them. */
export interface WebhookDraft
  extends Omit<
    WebhookSettings,
    | 'state'
    | 'archiveReason'
    | 'sealedUrl'
    | 'shownUrl'
    | 'sealedSecret'
    | 'sealedOldSecret'
    | 'oldSecretUntilUnixMs'
    | 'sealedHeaders'
  > {
  readonly isActive: boolean;
  /** An http or https URL; `mailto:` and addresses for mail. */
  readonly clientUrl: string;
  readonly headers: Readonly<Record<string, string>>;
}

/** What the service works with. */
export interface SubscriptionServiceDeps {
  readonly subscriptions: SubscriptionStore;
  readonly catalog: Pick<RunCatalog, 'findRun' | 'listRuns'>;
  readonly senderOf: SenderOf;
  readonly openBox: () => Promise<SecretBox>;
  readonly clock: Clock;
  readonly newKsuid: (nowUnixMs: number) => string;
  readonly randomBytes: (count: number) => Uint8Array;
}

/** Makes, changes and tests subscriptions. */
export class SubscriptionService {
  constructor(private readonly deps: SubscriptionServiceDeps) {}

  /** @returns the subscription and its signing secret, which is shown this once */
  async create(accountId: number, { isActive, clientUrl, headers, ...draft }: WebhookDraft) {
    const { subscriptions, clock, newKsuid, randomBytes } = this.deps;
    const nowUnixMs = clock.nowUnixMs();
    const id = `wsu_${newKsuid(nowUnixMs)}`;
    const secret = newWebhookSecret(randomBytes);
    const box = await this.deps.openBox();
    const subscription = await subscriptions.add({
      ...draft,
      ...sealUrl(clientUrl, draft.kind, id, box),
      ...{ id, accountId, createdUnixMs: nowUnixMs, state: isActive ? 'active' : 'inactive', archiveReason: null },
      ...{ sealedSecret: box.seal(secret, id), sealedOldSecret: null, oldSecretUntilUnixMs: null },
      sealedHeaders: sealHeaders(headers, id, box),
    });
    return { subscription, secret };
  }

  /** The complete URL of a subscription, for callers who may change it; masked if it cannot be opened. */
  async urlOf(subscription: WebhookSubscription): Promise<string> {
    try {
      return (await this.deps.openBox()).open(subscription.sealedUrl, subscription.id);
    } catch {
      // The next delivery logs the reason.
      return subscription.shownUrl;
    }
  }

  /** Changes the given settings. @returns `undefined` if the subscription does not exist */
  async change(
    accountId: number,
    id: string,
    { isActive, clientUrl, headers, ...changes }: Partial<WebhookDraft>,
  ): Promise<WebhookSubscription | undefined> {
    const { subscriptions, clock } = this.deps;
    const box = headers !== undefined || clientUrl !== undefined ? await this.deps.openBox() : undefined;
    const sealed = headers && box && { sealedHeaders: sealHeaders(headers, id, box) };
    return await subscriptions.change(
      accountId,
      id,
      (current) => {
        // The same URL stays sealed as it is: the store takes another sealed text for another URL.
        const isMoved = clientUrl !== undefined && box !== undefined && clientUrl !== openUrl(current, box);
        const moved = isMoved && sealUrl(clientUrl, current.kind, id, box);
        return { ...changes, ...sealed, ...moved, state: nextState(current, isActive, isMoved) };
      },
      clock.nowUnixMs(),
    );
  }

  /**
   * Gives a subscription a new secret. @param overlapMs how long the old one signs as well, in milliseconds
   * @returns the new secret; `undefined` where the subscription is not there
   */
  async rotate(accountId: number, id: string, overlapMs: number) {
    const { subscriptions, clock, randomBytes } = this.deps;
    const secret = newWebhookSecret(randomBytes);
    const sealedSecret = (await this.deps.openBox()).seal(secret, id);
    const nowUnixMs = clock.nowUnixMs();
    const old = (current: WebhookSubscription) =>
      overlapMs > 0
        ? { sealedOldSecret: current.sealedSecret, oldSecretUntilUnixMs: nowUnixMs + overlapMs }
        : NO_OLD_SECRET;
    const changed = await subscriptions.change(
      accountId,
      id,
      (current) => ({ sealedSecret, ...old(current) }),
      nowUnixMs,
    );
    return changed && { subscription: changed, secret };
  }

  /** From now on the new secret alone signs. */
  async endOverlap(accountId: number, id: string): Promise<WebhookSubscription | undefined> {
    return await this.deps.subscriptions.change(accountId, id, () => NO_OLD_SECRET, this.deps.clock.nowUnixMs());
  }

  /**
   * Sends a test immediately, whatever the subscription's state; it is neither counted nor logged. It is marked as a test, has
   * made-up run data and never reports a failure, so that nobody is paged.
   */
  async test(subscription: WebhookSubscription, signal: AbortSignal): Promise<Sent & { readonly eventId: string }> {
    const harmless = subscription.eventTypes.find((type) => type !== 'job.run.errored');
    const event = { ...this.eventOf(harmless ?? 'job.run.completed', undefined), isTest: true } as const;
    const sent = await sendEvent(this.deps.senderOf, subscription, event, signal);
    return { ...sent, eventId: event.id };
  }

  /**
   * An event for a run. @param runId `null` for the latest run, or made-up data if there is none
   * @returns `undefined` if the run does not exist
   */
  async sample(
    { accountId }: Pick<WebhookSubscription, 'accountId'>,
    eventType: WebhookEventType,
    runId: number | null,
  ): Promise<OutgoingEvent | undefined> {
    const { catalog } = this.deps;
    const latest = { orderBy: 'id', isDescending: true, limit: 1, offset: 0 } as const;
    const run =
      runId === null ? (await catalog.listRuns(accountId, latest)).items[0] : await catalog.findRun(accountId, runId);
    return run === undefined && runId !== null ? undefined : this.eventOf(eventType, run);
  }

  /** @param run `undefined` for a made-up one */
  private eventOf(eventType: WebhookEventType, run: CatalogRun | undefined): OutgoingEvent {
    const nowUnixMs = this.deps.clock.nowUnixMs();
    const ended = { 'job.run.started': RUN_STATUS.running, 'job.run.errored': RUN_STATUS.error } as const;
    const facts: RunFacts = {
      ...{ jobId: run?.job.id ?? 0, jobName: run?.job.name ?? 'test', runId: run?.id ?? 0 },
      ...{ environmentId: run?.environment.id ?? 0, environmentName: run?.environment.name ?? 'test' },
      ...{ projectId: run?.project.id ?? 0, projectName: run?.project.name ?? 'test' },
      ...{ engineVersion: run?.engineVersion ?? '', statusMessage: null },
      reason: run === undefined ? 'Test message: no run has happened' : run.reason,
      status: eventType === 'job.run.completed' ? (run?.status ?? RUN_STATUS.success) : ended[eventType],
      startedUnixMs: run?.dequeuedUnixMs ?? run?.createdUnixMs ?? nowUnixMs,
      finishedUnixMs: eventType === 'job.run.completed' ? (run?.finishedUnixMs ?? nowUnixMs) : null,
      erroredUnixMs: eventType === 'job.run.errored' ? (run?.finishedUnixMs ?? nowUnixMs) : null,
    };
    return { id: `wev_${this.deps.newKsuid(nowUnixMs)}`, eventType, facts, createdUnixMs: nowUnixMs };
  }
}

/** @returns `undefined` where it was sealed with another key */
function openUrl({ id, sealedUrl }: WebhookSubscription, box: SecretBox): string | undefined {
  try {
    return box.open(sealedUrl, id);
  } catch (error) {
    if (error instanceof SecretBoxError) return undefined;
    throw error;
  }
}

const NO_OLD_SECRET = { sealedOldSecret: null, oldSecretUntilUnixMs: null } as const;

/**
 * The state that follows from a change. A new URL makes an archived subscription active: a client that read its
 * `active: false`, and sends it back with a new URL, wants it to work again. One that was made inactive stays so.
 */
function nextState({ state }: WebhookSubscription, isActive: boolean | undefined, isMoved: boolean): WebhookState {
  if (isActive === true || (isMoved && state === 'archived')) return 'active';
  if (isActive === undefined || state === 'archived') return state;
  return 'inactive';
}
