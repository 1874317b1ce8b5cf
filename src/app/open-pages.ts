import type { Router } from 'express';
import type { Configuration } from '../config/configuration.js';
import { destinationNames } from '../config/otlp-destinations.js';
import { arePagesLocal } from '../core/http-listener.js';
import type { Feature } from '../feature.js';
import type { State } from '../storage/state.js';
import type { PageDeps, TraceViewer } from '../web/page/page-deps.js';
import { pageRouter } from '../web/page/page-router.js';
import type { Access } from './access.js';

/** Dependencies of the pages. */
export interface OpenPagesDeps
  extends Pick<
    PageDeps,
    | 'notes'
    | 'tracker'
    | 'reader'
    | 'measures'
    | 'live'
    | 'artifacts'
    | 'jobs'
    | 'otlpUrl'
    | 'version'
    | 'clock'
    | 'logger'
    | 'stopping'
  > {
  readonly state: Pick<State, 'accounts' | 'catalog' | 'traces'>;
  readonly access: Access;
  readonly features: readonly Pick<Feature, 'pages'>[];
}

/** Creates the pages of a configuration. */
export async function openPages(
  configuration: Pick<
    Configuration,
    'redaction' | 'public-url' | 'http' | 'web' | 'destinations' | 'environmentDestination' | 'processes' | 'trace-url'
  >,
  deps: OpenPagesDeps,
): Promise<Router> {
  const { state, access, features, otlpUrl, version, clock, logger, stopping } = deps;
  const { notes, tracker, reader, measures, live, artifacts, jobs } = deps;
  const { redaction, 'public-url': url } = configuration;
  const publicUrl = url === 'off' ? null : url;
  const routers = await Promise.all(features.map(({ pages }) => pages?.() ?? []));
  return pageRouter({
    ...{
      notes,
      tracker,
      reader,
      measures,
      live,
      artifacts,
      jobs,
      redaction,
      otlpUrl,
      version,
      clock,
      logger,
      stopping,
    },
    authenticator: access.authenticator,
    links: arePagesLocal(configuration.web.host, publicUrl) ? access.links : null,
    accounts: state.accounts,
    catalog: state.catalog,
    traces: state.traces,
    routers: routers.flat(),
    publicUrl,
    traceViewers: traceViewers(configuration),
    // With several processes, each can send only its own runs.
    destinations: configuration.processes === 'several' ? [] : destinationNames(configuration),
    isTokenNeeded: !access.isOpen(configuration.http.host),
  });
}

/** Returns where traces can be viewed, each URL once: those of destinations, and the one that is set for all. */
function traceViewers({
  destinations,
  'trace-url': url,
}: Pick<Configuration, 'destinations' | 'trace-url'>): readonly TraceViewer[] {
  const viewers = destinations.flatMap(({ name, traceUrl }) => (traceUrl === null ? [] : [{ name, url: traceUrl }]));
  if (url === 'off' || viewers.some((viewer) => viewer.url === url)) return viewers;
  return [...viewers, { name: new URL(url).host, url }];
}
