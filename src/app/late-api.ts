import type { Router } from 'express';
import { METRICS_PATH } from '../api/metrics-path.js';
import type { Artifacts } from '../artifact/feature.js';
import type { Logger } from '../component/logger.js';
import type { Configuration } from '../config/configuration.js';
import type { Feature } from '../feature.js';
import { API_PATH } from '../run/api-path.js';
import type { LocalStepRegistry } from '../run/local-step-registry.js';
import { lazyRouter } from '../web/lazy-router.js';
import { isForPages } from '../web/page/is-for-pages.js';
import type { Access } from './access.js';
import type { ApiRoutersDeps } from './api-routers.js';
import type { MeasuredParts } from './create-metrics.js';

/** What the API works with. */
export interface LateApiDeps extends Omit<ApiRoutersDeps, 'notes' | 'redaction'> {
  readonly access: Access;
  readonly registry: LocalStepRegistry;
  readonly artifacts: Artifacts;
  /** Where telemetry is received; asked only after the start. */
  readonly otlpUrl: () => string;
  /** What metrics are read from, beside what is here anyway. */
  readonly measured: MeasuredParts & { readonly notes: ApiRoutersDeps['notes'] };
  readonly features: readonly Feature[];
  readonly logger: Logger;
}

/** The API on both ports, and the pages. Their code is loaded when somebody first asks for it: a start need not wait. */
export class LateApi {
  constructor(
    private readonly configuration: Configuration,
    private readonly deps: LateApiDeps,
  ) {}

  /** Where commands are told of that run under `exec`. @param host of the port */
  executions(host: string): Router {
    return lazyRouter(`${API_PATH}/executions`, async () => {
      const { executionRouter } = await import('../web/execution-router.js');
      const { registry, access, logger } = this.deps;
      return executionRouter({ registry, gate: access.gateAt(host), logger });
    });
  }

  /** Uploads of artifacts, on the port that telemetry comes to: `--to` may name either. */
  uploads(): Router {
    return lazyRouter(`${API_PATH}/runs/`, async () =>
      this.behindTokens(this.configuration.http.host, [await this.deps.artifacts.uploads()]),
    );
  }

  /** All of it, on the port for people and tools. */
  whole(): Router {
    return lazyRouter('/api/', async () => {
      const { configuration, deps } = this;
      const { apiRouters } = await import('./api-routers.js');
      const { redaction } = configuration;
      const own = await apiRouters({ ...deps, notes: deps.measured.notes, redaction });
      return this.behindTokens(configuration.web.host, own);
    });
  }

  /** Metrics, on the port for people and tools. */
  metrics(): Router {
    return lazyRouter(METRICS_PATH, async () => {
      const { measured, features, clock, logger, version } = this.deps;
      const { createMetrics } = await import('./create-metrics.js');
      const added = await Promise.all(features.map(({ metrics }) => metrics?.() ?? []));
      const router = createMetrics({ ...measured, added: added.flat(), clock, logger, version });
      return this.behindTokens(this.configuration.web.host, [router]);
    });
  }

  /** The pages, for the port for people and tools; mounted before the API, which their links lead to. */
  pages(): Router {
    return lazyRouter(isForPages, async () => {
      const [{ openPages }, artifacts] = await Promise.all([import('./open-pages.js'), this.deps.artifacts.open()]);
      return openPages(this.configuration, { ...this.deps, notes: this.deps.measured.notes, artifacts });
    });
  }

  private async behindTokens(host: string, routers: readonly Router[]): Promise<Router> {
    const { apiRouter } = await import('../api/api-router.js');
    const { access, logger } = this.deps;
    return apiRouter({ authenticator: access.authenticator, isOpen: access.isOpen(host), routers, logger });
  }
}
