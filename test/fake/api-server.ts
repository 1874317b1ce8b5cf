import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Router } from 'express';
import { apiRouter } from '../../src/api/api-router.js';
import { Authenticator, hashOf, newSecret } from '../../src/api/authenticator.js';
import { FailedTries } from '../../src/api/failed-tries.js';
import { Health } from '../../src/core/health.js';
import { FIRST_ACCOUNT_ID, type NewToken } from '../../src/storage/account-store.js';
import type { PermissionSet } from '../../src/storage/state-tables.js';
import { WebServer } from '../../src/web/web-server.js';
import { FakeClock } from './fake-clock.js';
import { send } from './http-client.js';
import { RecordingLogger } from './recording-logger.js';
import { type FeatureState, openFeatureState } from './webhook-facts.js';

/** An answer of the API; `body` is JSON, or `undefined` where there is none. */
export interface ApiAnswer {
  readonly status: number;
  readonly headers: Readonly<Record<string, unknown>>;
  readonly body: unknown;
}

/** API routers behind a real port and real tokens, with a state in a folder of its own. */
export class ApiServer {
  /**
   * @param makeRouters makes what stands behind the tokens
   * @param isOpen whether who has no token is let in as a sender
   * @param makeOthers makes what stands beside the API
   */
  static async open(
    makeRouters: (server: ApiServer) => readonly Router[],
    isOpen = false,
    makeOthers: (server: ApiServer) => readonly Router[] = () => [],
  ): Promise<ApiServer> {
    const folder = await mkdtemp(join(tmpdir(), 'run-bridge-api-'));
    const state = await openFeatureState(join(folder, 'state.db'));
    const opened = new ApiServer(folder, state, makeRouters, isOpen, makeOthers);
    await opened.web.start();
    return opened;
  }

  readonly clock = new FakeClock();
  readonly logger = new RecordingLogger();
  readonly authenticator: Authenticator;
  private readonly web: WebServer;

  private constructor(
    /** The data folder. */
    readonly folder: string,
    readonly state: FeatureState,
    makeRouters: (server: ApiServer) => readonly Router[],
    isOpen: boolean,
    makeOthers: (server: ApiServer) => readonly Router[],
  ) {
    const { clock, logger } = this;
    const authenticator = new Authenticator({ tokens: state.tokens, tries: new FailedTries(clock), clock, logger });
    this.authenticator = authenticator;
    const routers = [...makeOthers(this), apiRouter({ authenticator, isOpen, routers: makeRouters(this), logger })];
    this.web = new WebServer({ host: '127.0.0.1', port: 0 }, { logger, health: new Health(), routers });
  }

  get port(): number {
    return this.web.address.port;
  }

  /** Makes a token. Default: an admin's of the first account, for ever. */
  async token(permission: PermissionSet = 'admin', given: Partial<NewToken> = {}): Promise<string> {
    const token = newSecret();
    await this.state.tokens.add({
      accountId: FIRST_ACCOUNT_ID,
      name: permission,
      userName: null,
      permission,
      hash: hashOf(token).toString('hex'),
      createdUnixMs: this.clock.nowUnixMs(),
      expiresUnixMs: null,
      ...given,
    });
    return token;
  }

  /** Sends a request with a token, or without one. @param body sent as JSON */
  async ask(method: string, path: string, token?: string, body?: unknown): Promise<ApiAnswer> {
    const headers = {
      ...(token === undefined ? {} : { Authorization: `Token ${token}` }),
      ...(body === undefined ? {} : { 'Content-Type': 'application/json' }),
    };
    const sending = body === undefined ? {} : { body: Buffer.from(JSON.stringify(body)) };
    const answer = await send(this.port, { method, path, headers, ...sending });
    const text = answer.body.toString();
    const isJson = /json/.test(answer.headers['content-type'] ?? '');
    return { status: answer.status, headers: answer.headers, body: isJson ? JSON.parse(text) : undefined };
  }

  async close(): Promise<void> {
    await this.web.shutdown(AbortSignal.abort());
    await this.state.close();
    await rm(this.folder, { recursive: true, force: true });
  }
}
