import type { Router } from 'express';
import { type NativeApiDeps, nativeRouter } from '../api/native/native-router.js';
import { openApiRouter } from '../api/openapi/openapi-router.js';
import type { Feature } from '../feature.js';
import type { State } from '../storage/state.js';

/** Dependencies of the API's routers. */
export interface ApiRoutersDeps
  extends Pick<NativeApiDeps, 'notes' | 'reader' | 'measures' | 'redaction' | 'clock' | 'stopping'> {
  readonly state: State;
  /** The features, which add routers. */
  readonly features: readonly Pick<Feature, 'api' | 'apiPaths'>[];
  /** The program's version. */
  readonly version: string;
}

/** Creates the API's routers, to be mounted behind `apiRouter`. Each has full paths and loads its code when it is created. */
export async function apiRouters({
  state,
  features,
  version,
  ...nativeApi
}: ApiRoutersDeps): Promise<readonly Router[]> {
  const added = await Promise.all(features.map(({ api }) => api?.() ?? []));
  const paths = await Promise.all(features.map(({ apiPaths }) => apiPaths?.() ?? {}));
  return [
    openApiRouter(version, paths),
    ...added.flat(),
    nativeRouter({ ...nativeApi, catalog: state.catalog, traces: state.traces }),
  ];
}
