import { randomBytes } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { createServer, type IncomingHttpHeaders, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { slices } from '../../src/core/lists.js';
import { FIRST_ACCOUNT_ID } from '../../src/storage/account-store.js';
import type { InvocationNote } from '../../src/storage/invocation-store.js';
import type { Manifest } from '../../src/storage/manifest.js';
import { DEFAULT_ATTEMPT_SCHEDULE, DEFAULT_BREAKER_LIMITS } from '../../src/webhook/circuit-breaker.js';
import { DISPATCHER_DEFAULTS, type DispatcherConfig, WebhookDispatcher } from '../../src/webhook/dispatcher.js';
import type { WebhookEvent } from '../../src/webhook/event.js';
import { AddressRules, parseAllowed, WebhookHttp } from '../../src/webhook/http.js';
import { EventSelector, type EventSelectorDeps } from '../../src/webhook/selection.js';
import { createSenders, PlatformSender } from '../../src/webhook/senders.js';
import type { WebhookStanding, WebhookSubscription } from '../../src/webhook/subscription.js';
import { ksuid, SUBSCRIPTION_ROWS, type WebhookTables } from '../../src/webhook/tables.js';
import { until } from '../tool/until.js';
import { FakeClock } from './fake-clock.js';
import { RecordingLogger } from './recording-logger.js';
import {
  commandNote,
  eventsOf,
  type FeatureState,
  type GivenSubscription,
  NO_DETAILS,
  openFeatureState,
  subscription,
  TEST_BOX,
} from './webhook-facts.js';

/** A request that the receiver got. */
export interface Received {
  readonly path: string;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
  readonly atUnixMs: number;
}

/** What the receiver answers; `hang` is no answer at all. */
export type Answer =
  | { readonly status: number; readonly headers?: Record<string, string>; readonly body?: string }
  | 'hang';

export const SECRET = `whsec_${Buffer.alloc(24, 7).toString('base64')}`;

/** A state, a real receiver, and a dispatcher whose time a test decides. */
export class WebhookBench {
  static async open(config: Partial<DispatcherConfig> = {}, archiveListener = 'off'): Promise<WebhookBench> {
    const folder = await mkdtemp(join(tmpdir(), 'run-bridge-webhook-'));
    const clock = new FakeClock();
    const path = join(folder, 'state.db');
    const bench = new WebhookBench(folder, clock, await openFeatureState(path, clock, archiveListener), config);
    await new Promise<void>((resolve) => bench.server.listen(0, '127.0.0.1', resolve));
    return bench;
  }

  readonly logger = new RecordingLogger();
  readonly received: Received[] = [];
  /** What is answered to a request, by its path. */
  answer: (path: string, count: number) => Answer = () => ({ status: 200 });
  /** What senders know of a run. */
  readDetails: (typeof NO_DETAILS)['read'] = NO_DETAILS.read;
  /** What they know of its reason. */
  statusMessage: (typeof NO_DETAILS)['statusMessage'] = NO_DETAILS.statusMessage;
  /** What is known of nodes of runs. */
  readNodes: EventSelectorDeps['runDetails']['readNodes'] = async () => ({ failed: [], warned: [], otherErrors: [] });
  /** How much of what had failed recovers with a run. */
  recovery: Awaited<ReturnType<EventSelectorDeps['recoveryOf']>> = { count: 1, ofCount: 1 };
  /** What the manifests of runs say. */
  manifest: Manifest | undefined;
  readonly box = TEST_BOX;
  readonly selector: EventSelector;
  readonly dispatcher: WebhookDispatcher;
  private readonly server: Server;
  private readonly others: WebhookDispatcher[] = [];
  private noted = 0;

  private constructor(
    private readonly folder: string,
    readonly clock: FakeClock,
    readonly state: FeatureState,
    private readonly config: Partial<DispatcherConfig>,
  ) {
    this.server = createServer((request, response) => {
      const chunks: Buffer[] = [];
      request.on('data', (chunk: Buffer) => chunks.push(chunk));
      request.on('end', () => {
        const path = request.url ?? '';
        const body = Buffer.concat(chunks).toString();
        this.received.push({ path, headers: request.headers, body, atUnixMs: clock.nowUnixMs() });
        const answer = this.answer(path, this.received.filter((one) => one.path === path).length);
        if (answer !== 'hang') response.writeHead(answer.status, answer.headers).end(answer.body ?? 'ok');
      });
    });
    this.selector = new EventSelector({
      runDetails: { readNodes: (...asked) => this.readNodes(...asked) },
      manifests: { read: async () => this.manifest },
      notifiedBefore: (event) => state.webhookEvents.notifiedBefore(event),
      notifiedOfRun: (subscriptionId, runId) => state.webhookEvents.ofRun(subscriptionId, runId),
      recoveryOf: async () => this.recovery,
    });
    this.dispatcher = this.newDispatcher();
  }

  get port(): number {
    const { port } = this.server.address() as AddressInfo;
    return port;
  }

  /** Another one on the same state, as another process has it. */
  newDispatcher(allow = 'loopback', holder = `p${this.others.length}`): WebhookDispatcher {
    const { clock, logger, state } = this;
    const rules = new AddressRules(parseAllowed(allow) ?? []);
    const resolve = async () => [{ address: '127.0.0.1', family: 4 }];
    const http = new WebhookHttp({ rules, timeoutMs: 10_000, resolve }, clock);
    const runDetails: typeof NO_DETAILS = {
      read: (...asked) => this.readDetails(...asked),
      statusMessage: (...asked) => this.statusMessage(...asked),
    };
    const openBox = async () => this.box;
    const sender = new PlatformSender({
      http,
      openBox,
      clock,
      runDetails,
      version: '0.0.0',
    });
    const newKsuid = (nowUnixMs: number) => ksuid(nowUnixMs, randomBytes);
    const dispatcher = new WebhookDispatcher(
      {
        ...DISPATCHER_DEFAULTS,
        ...{ schedule: DEFAULT_ATTEMPT_SCHEDULE, limits: DEFAULT_BREAKER_LIMITS },
        ...this.config,
      },
      {
        ...{ events: state.webhookEvents, subscriptions: state.subscriptions, clock, logger, holder, random: () => 0 },
        senderOf: createSenders({ http: sender, email: sender }, { http, openBox, clock, runDetails }),
        ...{ selector: this.selector, newKsuid },
      },
    );
    this.others.push(dispatcher);
    return dispatcher;
  }

  /** Adds a subscription to ends of runs, whose endpoint is the receiver's path of its name. */
  subscribe(name: string, given: GivenSubscription = {}): Promise<WebhookSubscription> {
    return this.state.subscriptions.add(
      subscription(name, {
        eventTypes: ['job.run.completed'],
        clientUrl: `http://127.0.0.1:${this.port}/${name}`,
        sealedSecret: this.box.seal(SECRET, `wsu_${name}`),
        ...given,
      }),
    );
  }

  /** Adds subscriptions to ends of runs at once, named by their number, as if they had been served before. */
  async subscribeMany(name: string, count: number, standing: WebhookStanding): Promise<void> {
    const db = this.state.db.withTables<WebhookTables>();

    const rows = Array.from({ length: count }, (_, at) => {
      const added = subscription(`${name}${at}`, {
        ...{ eventTypes: ['job.run.completed'], clientUrl: `http://127.0.0.1:${this.port}/${name}${at}` },
        sealedSecret: this.box.seal(SECRET, `wsu_${name}${at}`),
      });
      const unchanged = { updatedUnixMs: added.createdUnixMs, nextSlotUnixMs: 0, urlVersion: 1 };
      return SUBSCRIPTION_ROWS.toRow({ ...added, ...standing, ...unchanged });
    });
    for (const some of slices(rows, 500)) await db.insertInto('webhook_subscriptions').values(some).execute();
  }

  /** Ends a run of a job. @param given changes how it ended */
  async endRun(job = 'nightly', given: Partial<InvocationNote> = {}): Promise<void> {
    this.noted += 1;
    const note = commandNote(this.noted, { scope: { job, environment: 'production', project: 'shop' }, ...given });
    await this.state.invocations.note([note], this.clock.nowUnixMs());
  }

  events(name: string): Promise<readonly WebhookEvent[]> {
    return eventsOf(this.state, `wsu_${name}`);
  }

  find(name: string): Promise<WebhookSubscription | undefined> {
    return this.state.subscriptions.find(FIRST_ACCOUNT_ID, `wsu_${name}`);
  }

  /** Lets time pass and what is due then be tried. */
  async pass(ms: number, dispatcher = this.dispatcher): Promise<void> {
    this.clock.advance(ms);
    await dispatcher.flush(AbortSignal.timeout(20_000));
  }

  /** Waits until the receiver has had so many requests. */
  async arrived(count: number): Promise<void> {
    await until(`${count} requests`, () => this.received.length >= count);
  }

  async close(): Promise<void> {
    for (const one of this.others) await one.shutdown(AbortSignal.abort());
    this.server.closeAllConnections();
    await new Promise((resolve) => this.server.close(resolve));
    await this.state.close();
    await rm(this.folder, { recursive: true, force: true });
  }
}
