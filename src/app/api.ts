import type { Router } from 'express';
import { METRICS_PATH } from '../api/metrics-path.js';
import type { Artifacts } from '../artifact/feature.js';
import type { Configuration } from '../config/configuration.js';
import { lazy } from '../core/lazy.js';
import type { Logger } from '../core/logger.js';
import type { Feature } from '../feature.js';
import type { Metrics } from '../metric/feature.js';
import { API_PATH } from '../run/api-path.js';
import type { LocalStepRegistry } from '../run/local-step-registry.js';
import { isForPages, isLostBrowser, lazyRouter } from '../web/lazy-router.js';
import type { Access } from './access.js';
import type { ApiRoutersDeps } from './api-routers.js';
import type { OpenPagesDeps } from './open-pages.js';

/** Dependencies of the API. */
export interface ApiDeps
  extends Omit<ApiRoutersDeps, 'redaction' | 'measures'>,
    Pick<OpenPagesDeps, 'tracker' | 'measures' | 'live' | 'jobs'> {
  readonly access: Access;
  readonly registry: LocalStepRegistry;
  readonly artifacts: Artifacts;
  /** Returns the URL at which telemetry is received; available after the start. */
  readonly otlpUrl: () => string;
  readonly metrics: Metrics;
  readonly features: readonly Feature[];
  readonly logger: Logger;
}

/** The API on both ports, and the pages. Their code is loaded on the first request, so that a start does not wait for it. */
export class Api {
  private readonly openedPages = lazy(async () => {
    const [{ openPages }, artifacts] = await Promise.all([import('./open-pages.js'), this.deps.artifacts.open()]);
    return openPages(this.configuration, { ...this.deps, artifacts });
  });

  constructor(
    private readonly configuration: Configuration,
    private readonly deps: ApiDeps,
  ) {}

  /** Returns the router that commands under `exec` report to. @param host of the port */
  executions(host: string): Router {
    return lazyRouter(`${API_PATH}/executions`, async () => {
      const { executionRouter } = await import('../web/execution-router.js');
      const { registry, access, logger } = this.deps;
      return executionRouter({ registry, gate: access.gateAt(host), logger });
    });
  }

  /** Returns the router for uploads of artifacts on the OTLP port; `--to` may name either port. */
  uploads(): Router {
    return lazyRouter(`${API_PATH}/runs/`, async () =>
      this.behindTokens(this.configuration.http.host, [await this.deps.artifacts.uploads()]),
    );
  }

  /** Returns the whole API, for the web port. */
  whole(): Router {
    return lazyRouter('/api/', async () => {
      const { configuration, deps } = this;
      const { apiRouters } = await import('./api-routers.js');
      const { redaction } = configuration;
      const routers = await apiRouters({ ...deps, redaction });
      return this.behindTokens(configuration.web.host, routers);
    });
  }

  /** Returns the metrics, for the web port. */
  metrics(): Router {
    return lazyRouter(METRICS_PATH, async () =>
      this.behindTokens(this.configuration.web.host, [await this.deps.metrics.router()]),
    );
  }

  /** Returns the pages, for the web port; mounted before the API, which their links lead to. */
  pages(): Router {
    return lazyRouter(isForPages, () => this.openedPages.get());
  }

  /** Returns a page for browsers that request an unknown path; mounted last. */
  lost(): Router {
    return lazyRouter(isLostBrowser, () => this.openedPages.get());
  }

  private async behindTokens(host: string, routers: readonly Router[]): Promise<Router> {
    const { apiRouter } = await import('../api/api-router.js');
    const { access, logger } = this.deps;
    return apiRouter({ authenticator: access.authenticator, isOpen: access.isOpen(host), routers, logger });
  }
}
