import { FailedTries } from '../../src/api/failed-tries.js';
import { SignInLinks } from '../../src/api/sign-in-links.js';
import { FolderArtifactStore } from '../../src/artifact/folder-artifact-store.js';
import { RunArtifacts } from '../../src/artifact/run-artifacts.js';
import { createResend } from '../../src/export/feature.js';
import { createHistories } from '../../src/history/feature.js';
import { pageRouter } from '../../src/web/page/page-router.js';
import { type Answer, send } from './http-client.js';
import { type OwnApi, openOwnApi } from './own-api.js';
import { settingsPage } from './settings-page.js';
import { webhookParts } from './webhook-parts.js';

/** A page as a test reads it. */
export interface Shown {
  readonly status: number;
  readonly headers: Answer['headers'];
  readonly html: string;
  readonly body: Buffer;
}

/** The pages on a port of their own, before the API, over the runs of samples. */
export class PageServer {
  /** @param isLastOpen as in `openOwnApi` */
  static async open(
    samples: readonly string[],
    publicUrl: string | null = null,
    isLastOpen = false,
  ): Promise<PageServer> {
    const api = await openOwnApi(samples, isLastOpen);
    const { state, authenticator, clock, logger } = api.server;
    const openStore = async () => new FolderArtifactStore(api.dataFolder);
    const hooks = webhookParts(state, clock);
    const price = { perHour: 3_600_000, currency: 'USD' };
    const histories = createHistories(
      { 'warehouse-price': price },
      { state, clock, measures: api.measuring.measures, version: '0.0.0' },
    );
    const features = [
      hooks,
      api.queries,
      api.jobs,
      api.retention,
      settingsPage(state, clock, api.retention.kinds),
      histories,
      createResend({ processes: 'one' }, { state, exports: undefined, version: '0.0.0' }),
    ];
    const links = new SignInLinks({ tokens: state.tokens, tries: new FailedTries(clock), clock });
    const pages = pageRouter({
      ...{ authenticator, clock, logger, links, publicUrl, ...api.measuring },
      artifacts: new RunArtifacts({ catalog: state.catalog, openStore, dataFolder: api.dataFolder }),
      jobs: api.jobs,
      accounts: state.accounts,
      traces: state.traces,
      routers: (await Promise.all(features.map(({ pages }) => pages?.() ?? []))).flat(),
      redaction: 'literals',
      otlpUrl: () => 'http://127.0.0.1:4318',
      traceViewers: [{ name: 'jaeger', url: 'http://127.0.0.1:16686/trace/{trace_id}' }],
      isTokenNeeded: false,
      version: '0.0.0',
    });
    api.others.use(pages);
    return new PageServer(api, hooks);
  }

  private constructor(
    readonly api: OwnApi,
    readonly hooks: ReturnType<typeof webhookParts>,
  ) {}

  get origin(): string {
    return `http://127.0.0.1:${this.api.server.port}`;
  }

  /** @param token in the cookie of whoever asks */
  get(path: string, token?: string, headers: Readonly<Record<string, string>> = {}): Promise<Shown> {
    return this.ask('GET', path, { Accept: 'text/html', ...cookieOf(token), ...headers });
  }

  /** Sends a form of these pages. @param headers in place of what a browser says of where it came from */
  post(
    path: string,
    token: string | undefined,
    fields: Readonly<Record<string, string | readonly string[]>> = {},
    headers: Readonly<Record<string, string>> = { Origin: this.origin, 'Sec-Fetch-Site': 'same-origin' },
  ): Promise<Shown> {
    const form = { 'Content-Type': 'application/x-www-form-urlencoded' };
    const pairs = Object.entries(fields).flatMap(([name, value]) =>
      [value].flat().map((one) => [name, one] as [string, string]),
    );
    const body = Buffer.from(new URLSearchParams(pairs).toString());
    return this.ask('POST', path, { ...form, ...cookieOf(token), ...headers }, body);
  }

  close(): Promise<void> {
    return this.api.close();
  }

  private async ask(method: string, path: string, headers: Record<string, string>, body?: Uint8Array): Promise<Shown> {
    const { port } = this.api.server;
    const sending = { method, path, headers: { Host: `127.0.0.1:${port}`, ...headers } };
    const answer = await send(port, body === undefined ? sending : { ...sending, body });
    return { status: answer.status, headers: answer.headers, html: answer.body.toString(), body: answer.body };
  }
}

function cookieOf(token: string | undefined): Record<string, string> {
  return token === undefined ? {} : { Cookie: `run_bridge_token=${token}` };
}
