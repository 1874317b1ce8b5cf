import { ApiError } from '../api/api-error.js';
import type { Clock } from '../core/clock.js';
import { startOf } from '../core/text.js';
import { countVerdicts } from '../run/verdict.js';
import type { CatalogRun, RunCatalog } from '../storage/run-catalog.js';
import { RUN_STATUS } from '../storage/state-tables.js';
import { commonFactsOf, NO_RUN, type OutgoingEvent, type RunFacts } from './event.js';
import { newWebhookSecret, openHeaders, type SecretBox, SecretBoxError, sealHeaders, sealUrl } from './secrets.js';
import { contentTypeOf, type PayloadSubscription, payloadOf, type SenderOf, type Sent, sendEvent } from './senders.js';
import {
  NO_FILTER,
  type WebhookEventType,
  type WebhookSettings,
  type WebhookState,
  type WebhookSubscription,
} from './subscription.js';
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
    | 'sealedTemplate'
    | 'sealedRoutingKey'
  > {
  readonly isActive: boolean;
  /** An http or https URL; `mailto:` and addresses for mail. */
  readonly clientUrl: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly bodyTemplate: string | null;
  readonly routingKey: string | null;
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
  async create(accountId: number, given: WebhookDraft) {
    const notifyOnArchive = (await this.listenerOf(accountId, given.notifyOnArchive, given.name)) ?? null;
    return this.add(accountId, { ...given, notifyOnArchive });
  }

  /**
   * Finds the subscription that is notified of the archiving of another; for an address without one it makes one, to no events.
   * @param asked the id of a subscription, or `mailto:` and addresses
   * @throws ApiError 400 where there is no such subscription
   */
  async listenerOf(accountId: number, asked: string | null | undefined, name: string, ownId?: string) {
    if (asked === null || asked === undefined) return asked;
    const { subscriptions } = this.deps;
    if (!asked.startsWith('mailto:')) {
      if (asked === ownId) throw new ApiError(400, 'notify_on_archive: is this webhook itself; give another one.');
      if ((await subscriptions.find(accountId, asked)) !== undefined) return asked;
      throw new ApiError(400, `notify_on_archive: there is no webhook ${asked} in this account.`);
    }
    const known = await subscriptions.findMail(accountId, asked);
    if (known !== undefined && known.id !== ownId) return known.id;
    const draft = { ...MAIL_DRAFT, name: startOf(`archiving of ${name}`, 255), clientUrl: asked };
    return (await this.add(accountId, draft)).subscription.id;
  }

  private async add(
    accountId: number,
    { isActive, clientUrl, headers, bodyTemplate, routingKey, ...draft }: WebhookDraft,
  ) {
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
      sealedTemplate: bodyTemplate === null ? null : box.seal(bodyTemplate, id),
      sealedRoutingKey: routingKey === null ? null : box.seal(routingKey, id),
    });
    return { subscription, secret };
  }

  /** Returns the complete URL of a subscription, for callers who may change it; masked if it cannot be opened. */
  async urlOf(subscription: WebhookSubscription): Promise<string> {
    try {
      return (await this.deps.openBox()).open(subscription.sealedUrl, subscription.id);
    } catch {
      // The next delivery logs the reason.
      return subscription.shownUrl;
    }
  }

  /** Returns the template of a subscription's bodies, for callers who may change it; `null` where it has none, or it cannot be opened. */
  async templateOf({ id, sealedTemplate }: WebhookSubscription): Promise<string | null> {
    if (sealedTemplate === null) return null;
    try {
      return (await this.deps.openBox()).open(sealedTemplate, id);
    } catch {
      return null;
    }
  }

  /** Returns a subscription's custom headers, to be checked, not to be shown; none if they cannot be opened. */
  async headersOf(subscription: WebhookSubscription): Promise<Readonly<Record<string, string>>> {
    if (subscription.sealedHeaders === null) return {};
    try {
      return openHeaders(subscription, await this.deps.openBox());
    } catch {
      return {};
    }
  }

  /** Renders a template with everything that an event may have. @throws BodyTemplateError if it names anything else, or makes no JSON where that is needed */
  async checkTemplate(subscription: PayloadSubscription, bodyTemplate: string, headers: WebhookDraft['headers']) {
    const event = this.eventOf('job.run.completed', undefined);
    const full = { erroredUnixMs: event.createdUnixMs, missingArtifacts: { count: 0, paths: [], reason: '' } };
    const facts = { ...event.facts, ...full };
    const payload = await payloadOf(subscription, { ...event, facts, isTest: true }, NO_DETAILS);
    const { renderBody } = await import('./body-template.js');
    const isJson = contentTypeOf({ kind: 'http' }, { bodyTemplate, headers }).includes('json');
    const message = { title: '', text: '', url: '' };
    renderBody(bodyTemplate, { ...payload, run_bridge: NO_RUN_DETAILS, message }, { isJson, isStrict: true });
  }

  /** Changes the given settings. @returns `undefined` if the subscription does not exist */
  async change(
    accountId: number,
    id: string,
    {
      isActive,
      clientUrl,
      headers,
      bodyTemplate,
      routingKey,
      notifyOnArchive: asked,
      ...changes
    }: Partial<WebhookDraft>,
  ): Promise<WebhookSubscription | undefined> {
    const { subscriptions, clock } = this.deps;
    const notifyOnArchive = await this.listenerOf(accountId, asked, changes.name ?? id, id);
    const isSealing = [headers, clientUrl, bodyTemplate, routingKey].some((given) => given !== undefined);
    const box = isSealing ? await this.deps.openBox() : undefined;
    const seal = (text: string | null) => (text === null ? null : (box?.seal(text, id) ?? null));
    const sealed = {
      ...(headers && box && { sealedHeaders: sealHeaders(headers, id, box) }),
      ...(notifyOnArchive !== undefined && { notifyOnArchive }),
      ...(bodyTemplate !== undefined && { sealedTemplate: seal(bodyTemplate) }),
      ...(routingKey !== undefined && { sealedRoutingKey: seal(routingKey) }),
    };
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
   * Makes an event for a run. @param runId `null` for the latest run, or made-up data if there is none
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
      ...NO_RUN,
      ...(run === undefined ? MADE_UP_RUN : commonFactsOf(run)),
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

const MADE_UP_RUN = {
  ...{ jobName: 'test', environmentName: 'test', projectName: 'test' },
  reason: 'Test message: no run has happened',
} as const;

/** A test needs no details of a run. */
const NO_DETAILS = {
  statusMessage: async (_accountId: number, _runId: number, message: string) => message,
  read: () => Promise.reject(new Error('no run has happened')),
};

const NO_RUN_DETAILS = {
  ...{ verdict: 'success', recovered: false, recovered_count: null, failed_before_count: null },
  ...{ counts: countVerdicts([]), failed_nodes: [], errors: [], omitted_error_count: 0, omitted_failed_node_count: 0 },
};

/** What a subscription has where nothing is given. */
export const DRAFT_DEFAULTS: Omit<WebhookDraft, 'name' | 'clientUrl' | 'eventTypes'> = {
  ...{ kind: 'http', description: '', jobIds: [], isActive: true, filter: NO_FILTER, headers: {} },
  ...{ hasAuthorization: true, signatureHeader: 'authorization', hasStandardHeaders: true, maxPerMinute: null },
  ...{ hasRunDetails: false, isPerOwner: false, holdsRepeats: false },
  ...{ bodyTemplate: null, routingKey: null, notifyOnArchive: null, expectMs: null },
};

/** A subscription to nothing but notices. */
const MAIL_DRAFT: Omit<WebhookDraft, 'name' | 'clientUrl'> = {
  ...DRAFT_DEFAULTS,
  ...{ kind: 'email', description: 'is notified when another webhook is failing', eventTypes: [] },
};

const NO_OLD_SECRET = { sealedOldSecret: null, oldSecretUntilUnixMs: null } as const;

/**
 * Returns the state that follows from a change. A new URL makes an archived subscription active: a client that read its
 * `active: false`, and sends it back with a new URL, wants it to work again. One that was made inactive stays so.
 */
function nextState({ state }: WebhookSubscription, isActive: boolean | undefined, isMoved: boolean): WebhookState {
  if (isActive === true || (isMoved && state === 'archived')) return 'active';
  if (isActive === undefined || state === 'archived') return state;
  return 'inactive';
}
