import { type Request, type Response, Router } from 'express';
import { apiErrors } from '../../src/api/api-router.js';
import type { Caller } from '../../src/api/caller.js';
import { apiRouters } from '../../src/app/api-routers.js';
import type { JobDefinition } from '../../src/config/jobs.js';
import type { Clock } from '../../src/core/clock.js';
import { Health } from '../../src/core/health.js';
import { RecordLogFiles } from '../../src/log/record-log-files.js';
import { createPlatformApi } from '../../src/platform/feature.js';
import { FIRST_ACCOUNT_ID } from '../../src/storage/account-store.js';
import type { State } from '../../src/storage/state.js';
import { WebServer } from '../../src/web/web-server.js';
import { send } from './http-client.js';
import { idleJobs } from './idle-jobs.js';
import { RecordingLogger } from './recording-logger.js';
import { webhookParts } from './webhook-parts.js';

/** The platform's API on a port of its own, for a caller of the first account who may do everything. */
export class V2Server {
  static async start(
    state: State,
    {
      dataFolder,
      jobs: declared,
      clock,
      publicUrl = 'off',
    }: { dataFolder: string; jobs: readonly JobDefinition[]; clock: Clock; publicUrl?: string },
  ): Promise<V2Server> {
    const logger = new RecordingLogger();
    const router = Router();
    router.use((_request: Request, response: Response, next: () => void) => {
      response.locals.caller = CALLER;
      next();
    });
    const reader = new RecordLogFiles(dataFolder, () => {});
    const jobs = idleJobs(state, clock, declared);
    const platform = createPlatformApi(
      { redaction: 'literals', 'public-url': publicUrl },
      { state, reader, jobs, clock },
    );
    const features = [platform, jobs, webhookParts(state, clock)];
    const own = {
      measures: { ofSteps: async () => [] },
      notes: { listSetAside: async () => [] },
      redaction: 'literals',
      stopping: new AbortController().signal,
      version: '0.0.0',
    } as const;
    for (const one of await apiRouters({ state, reader, features, clock, ...own })) router.use(one);
    router.use('/api', apiErrors(logger));
    const web = new WebServer({ host: '127.0.0.1', port: 0 }, { logger, health: new Health(), routers: [router] });
    await web.start();
    return new V2Server(web);
  }

  private constructor(private readonly web: WebServer) {}

  /** @param path below `/api/v2/accounts/10001` */
  get(path: string, headers: Readonly<Record<string, string>> = {}) {
    return this.getAt(`/api/v2/accounts/${FIRST_ACCOUNT_ID}${path}`, headers);
  }

  /** @param path whole */
  async getAt(path: string, headers: Readonly<Record<string, string>> = {}) {
    return this.ask('GET', path, headers);
  }

  async ask(method: string, path: string, headers: Readonly<Record<string, string>> = {}) {
    const answer = await send(this.web.address.port, { method, path, headers });
    return { status: answer.status, headers: answer.headers, body: JSON.parse(answer.body.toString()) };
  }

  async close(): Promise<void> {
    await this.web.shutdown(AbortSignal.abort());
  }
}

const CALLER: Caller = { accountId: FIRST_ACCOUNT_ID, tokenId: 1, permission: 'account_admin' };
