import { randomBytes, randomUUID } from 'node:crypto';
import { lookup } from 'node:dns/promises';
import { chmod, readFile, rename, rm, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Clock } from '../component/clock.js';
import { errorCode } from '../component/error-code.js';
import { ksuid } from '../component/ksuid.js';
import type { Logger } from '../component/logger.js';
import type { Configuration } from '../config/configuration.js';
import type { State } from '../store/state.js';
import { AddressRules, parseAllowed } from '../webhook/address-rules.js';
import { DEFAULT_ATTEMPT_SCHEDULE } from '../webhook/attempt-schedule.js';
import { ChatSender } from '../webhook/chat-sender.js';
import { MailSender } from '../webhook/mail-sender.js';
import { MeasuredStories, type MeasuredStoriesDeps } from '../webhook/message/measured-stories.js';
import { slackMessage } from '../webhook/message/slack-message.js';
import { teamsMessage } from '../webhook/message/teams-message.js';
import { PlatformSender } from '../webhook/platform-sender.js';
import { SecretBox } from '../webhook/secret-box.js';
import { DEFAULT_STANDING_LIMITS } from '../webhook/standing-rule.js';
import { WebhookDesk } from '../webhook/webhook-desk.js';
import { DISPATCHER_DEFAULTS, WebhookDispatcher } from '../webhook/webhook-dispatcher.js';
import { WebhookHttp } from '../webhook/webhook-http.js';

/** What webhooks take from outside. */
export interface WebhooksDeps extends Pick<MeasuredStoriesDeps, 'tracker' | 'reader' | 'webUrl'> {
  readonly state: Pick<State, 'subscriptions' | 'webhookEvents' | 'catalog'>;
  /** By what the data folder, which one process at a time has, is known in a database that others share. */
  readonly folderId: string;
  readonly clock: Clock;
  readonly logger: Logger;
  /** Uniform in [0, 1). */
  readonly random: () => number;
  /** The program's version. */
  readonly version: string;
}

/** An endpoint has so long to answer, in milliseconds. */
const TIMEOUT_MS = 10_000;

/** The parts that deliver webhooks of a configuration, not yet started. */
export class Webhooks {
  readonly dispatcher: WebhookDispatcher;
  readonly desk: WebhookDesk;
  private readonly http: WebhookHttp;
  private box: Promise<SecretBox> | undefined;

  constructor(
    private readonly configuration: Configuration,
    private readonly deps: WebhooksDeps,
  ) {
    const { state, clock, logger, random, version } = deps;
    const { subscriptions, webhookEvents: events, catalog } = state;
    const rules = new AddressRules(configuration['webhook-allow'].flatMap((entry) => parseAllowed(entry) ?? []));
    const resolve = (hostname: string) => lookup(hostname, { all: true });
    this.http = new WebhookHttp({ rules, timeoutMs: TIMEOUT_MS, resolve }, clock);
    const openBox = () => this.openBox();
    const stories = new MeasuredStories({ ...deps, catalog, redaction: configuration.redaction });
    const chat = { http: this.http, stories, openBox, clock };
    const platform = new PlatformSender({ ...chat, version });
    const { 'smtp-url': smtpUrl, 'smtp-from': from } = configuration;
    const senders = {
      http: platform,
      slack: new ChatSender(slackMessage, chat),
      teams: new ChatSender(teamsMessage, chat),
      email: new MailSender({ stories, smtpUrl, from, timeoutMs: TIMEOUT_MS, openBox, clock }),
    };
    const schedule = { ...DEFAULT_ATTEMPT_SCHEDULE, delaysMs: configuration['webhook-retries'] };
    this.dispatcher = new WebhookDispatcher(
      { ...DISPATCHER_DEFAULTS, schedule, limits: DEFAULT_STANDING_LIMITS },
      { events, subscriptions, senders, holder: this.folderHolder + randomUUID(), clock, random, logger },
    );
    const newKsuid = (nowUnixMs: number) => ksuid(nowUnixMs, randomBytes);
    this.desk = new WebhookDesk({ subscriptions, catalog, senders, openBox, clock, newKsuid, randomBytes });
  }

  /** What an earlier process of the data folder left behind need not be waited for. @throws StoreError */
  async start(): Promise<void> {
    const isShared = this.configuration['database-url'] !== 'off';
    await this.deps.state.webhookEvents.release(isShared ? this.folderHolder : undefined);
    await this.dispatcher.start();
  }

  async shutdown(deadline: AbortSignal): Promise<void> {
    await this.dispatcher.shutdown(deadline);
    this.http.close();
  }

  /** How holders of the data folder's processes begin. */
  private get folderHolder(): string {
    return `${this.deps.folderId}/`;
  }

  private openBox(): Promise<SecretBox> {
    this.box ??= this.readKey()
      .then((key) => new SecretBox(key))
      .catch((error: unknown) => {
        this.box = undefined;
        throw error;
      });
    return this.box;
  }

  private async readKey(): Promise<Uint8Array> {
    const { webhookKey, 'data-dir': folder } = this.configuration;
    return webhookKey ?? (await readWebhookKeyFile(folder, randomBytes, this.deps.logger));
  }
}

/** The file of the key in the data folder. */
export const WEBHOOK_KEY_FILE = 'webhook-key';
const PRIVATE_MODE = 0o600;
const KEY_BYTES = 32;

/**
 * The key by which secrets of webhooks are sealed, from its file, which is made where there is none. Nobody else can read it.
 * @throws an Error that names the file, where it is damaged; what the file system throws
 */
export async function readWebhookKeyFile(
  dataFolder: string,
  randomBytes: (count: number) => Uint8Array,
  logger: Logger,
): Promise<Uint8Array> {
  const path = join(dataFolder, WEBHOOK_KEY_FILE);
  try {
    const key = Buffer.from((await readFile(path, 'utf8')).trim(), 'base64');
    if (key.byteLength !== KEY_BYTES) {
      throw new Error(
        `${path} holds no key of 32 bytes in base64; put the one of a backup there, or remove the file, rotate the secrets of webhooks and give their URLs and headers anew`,
      );
    }
    if (((await stat(path)).mode & 0o077) !== 0) {
      await chmod(path, PRIVATE_MODE);
      logger.warn({ path }, 'others could read the key of webhooks; that was ended');
    }
    return key;
  } catch (error) {
    if (errorCode(error) !== 'ENOENT') throw error;
  }
  // Whole or not there, whenever the program is killed.
  const key = randomBytes(KEY_BYTES);
  const written = `${path}.partial`;
  await rm(written, { force: true });
  await writeFile(written, `${Buffer.from(key).toString('base64')}\n`, { mode: PRIVATE_MODE, flag: 'wx', flush: true });
  await rename(written, path);
  return key;
}
