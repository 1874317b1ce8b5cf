import type { Router } from 'express';
import { openApiRouter } from '../api/openapi/openapi-router.js';
import type { OwnApiDeps } from '../api/own/own-api-deps.js';
import { ownRouter } from '../api/own/own-router.js';
import type { Feature } from '../feature.js';
import type { State } from '../storage/state.js';

/** What the API's routers are made of. */
export interface ApiRoutersDeps
  extends Pick<OwnApiDeps, 'notes' | 'reader' | 'measures' | 'redaction' | 'clock' | 'stopping'> {
  readonly state: State;
  /** Adds the routers of features. */
  readonly features: readonly Pick<Feature, 'api' | 'apiPaths'>[];
  /** The program's version. */
  readonly version: string;
}

/** The API's routers; each stands behind `apiRouter`, has whole paths, and loads what it needs when it is made. */
export async function apiRouters({ state, features, version, ...own }: ApiRoutersDeps): Promise<readonly Router[]> {
  const added = await Promise.all(features.map(({ api }) => api?.() ?? []));
  const paths = await Promise.all(features.map(({ apiPaths }) => apiPaths?.() ?? {}));
  return [
    openApiRouter(version, paths),
    ...added.flat(),
    ownRouter({ ...own, catalog: state.catalog, traces: state.traces }),
  ];
}
