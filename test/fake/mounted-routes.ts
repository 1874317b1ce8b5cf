import type { Router } from 'express';

/** A route as it is mounted. */
export interface MountedRoute {
  /** For example `GET`. */
  readonly method: string;
  /** For example `/api/v2/accounts/:accountId/runs`. */
  readonly path: string;
  /** What its guard asks for; `undefined` where `authorize` does not stand before its handler. */
  readonly right: unknown;
}

/** Every route of routers, and of routers in them, which have whole paths. */
export function mountedRoutes(routers: readonly Pick<Router, 'stack'>[]): readonly MountedRoute[] {
  return routers.flatMap(({ stack }) =>
    stack.flatMap(({ route, handle }) => {
      if (route === undefined) return isRouter(handle) ? mountedRoutes([handle]) : [];
      const right: unknown = route.stack
        .map((layer) => Reflect.get(layer.handle, 'right'))
        .find((one) => one !== undefined);
      const methods = [...new Set(route.stack.map(({ method }) => (method ?? 'all').toUpperCase()))];
      return methods.map((method) => ({ method, path: route.path, right }));
    }),
  );
}

function isRouter(handle: object): handle is Pick<Router, 'stack'> {
  return Array.isArray(Reflect.get(handle, 'stack'));
}
