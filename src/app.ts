import { Access } from './app/access.js';
import type { Api } from './app/api.js';
import type { AppDeps } from './app/app-deps.js';
import { type Host, onHost } from './app/host.js';
import { openHook } from './app/open-hook.js';
import type { Ports } from './app/ports.js';
import { Announcement, type BuildServer, Import, openLeftovers, Program, Server, Store } from './app/program.js';
import { createArtifacts } from './artifact/feature.js';
import { createKafkaSource, RETENTION_LEASE } from './cluster/feature.js';
import type { Configuration } from './config/configuration.js';
import type { Component } from './core/lifecycle.js';
import { createResend } from './export/feature.js';
import type { Feature } from './feature.js';
import { createHistories } from './history/feature.js';
import { createJobs } from './job/feature.js';
import { GuardedConsumer } from './log/record-log.js';
import { createMetrics, createRunMetrics } from './metric/feature.js';
import { createPlatformApi } from './platform/feature.js';
import { createQueries } from './query/feature.js';
import type { TraceId } from './record/telemetry-record.js';
import { createRemovals, createRetention, type RetentionParts } from './retention/feature.js';
import { createSettingsPage } from './settings/feature.js';
import type { WebServer } from './web/web-server.js';
import { createWebhooks, retainedDeliveries } from './webhook/feature.js';

export type { BuildServer, Import, Program, Server, Store } from './app/program.js';

// The program without its command line: the features that each command's program is made of.

/** `serve`: receives telemetry and answers; builds runs, unless its role leaves them to others. @throws ConfigurationError, StoreError, DataFolderInUseError, OutputError */
export async function openServer(config: Configuration, deps: AppDeps): Promise<Server> {
  const isBuilding = config.role !== 'web';
  // What answers requests is loaded where somebody can ask: other programs are done without it.
  const [{ Api }, { Ports }] = await Promise.all([import('./app/api.js'), import('./app/ports.js')]);
  return onHost(config, deps, { isShareable: true, isBuilding }, async (host) => {
    const stopping = new AbortController();
    const access = new Access(config['otlp-auth'], { ...host, tokens: host.state.tokens });
    const retention = createRetention(config, { ...host, rows: [retainedDeliveries(config, host)] });
    const webhooks = createWebhooks(config, { ...host, webUrl: () => ports.webUrl });
    const jobs = createJobs(config, { ...host, credentials: () => access.credentialsFor(config.http.host) });
    const platform = createPlatformApi(config, { ...host, jobs });
    const artifacts = createArtifacts(config, host);
    const queries = createQueries(config, { ...host, stopping: stopping.signal });
    const settings = createSettingsPage(config, { ...host, retention, ports: () => ports });
    const histories = createHistories(config, host);
    const runMetrics = createRunMetrics(config, host);
    const building = isBuilding ? createBuilding(config, host, retention) : BUILDING_NOTHING;
    const features: readonly Feature[] = [
      webhooks,
      platform,
      jobs,
      artifacts,
      queries,
      retention,
      createResend(config, host),
      settings,
      histories,
      runMetrics,
      ...host.clusterFeatures,
      ...building.features,
    ];
    const hosted = await openHook(config, host);
    const metrics = createMetrics({
      ...host,
      kept: { ...host, runs: host.localRuns },
      features,
      connections: () => ports.connectionCounts,
    });
    const api: Api = new Api(config, {
      ...host,
      access,
      artifacts,
      jobs,
      metrics,
      features,
      otlpUrl: () => ports.otlpUrl,
      stopping: stopping.signal,
    });
    const ports: Ports = await Ports.create(config, { ...host, access, api, hook: hosted.hook });
    const leftovers = await openLeftovers(config, host, host.recordLog);
    const program = new Program(host, leftovers, host.recordLog, {
      retention: building.retention,
      webhooks: webhooks.components,
      sources: [
        host.memory,
        host.watch,
        ...hosted.components,
        ports.receivers,
        ports.web,
        ...building.sources,
        ...runMetrics.components,
        leftovers,
        ...jobs.components,
        new Announcement(host, ports, stopping),
      ],
    });
    return new Server(program, ports, host);
  });
}

const ABOUT_BUILDING = {
  does: 'run-bridge builds runs here of what Kafka has, and exports them.',
  elsewhere:
    'Pages and the API are at a run-bridge with --role web, or all; telemetry goes there, too, or to one with --role receive.',
};

/** `serve --role build`: builds runs of what others received, and lets others answer. @throws as `openServer` */
export async function openBuilder(config: Configuration, deps: AppDeps): Promise<BuildServer> {
  const { createStatusPort } = await import('./app/ports.js');
  return onHost(config, deps, { isShareable: true, isBuilding: true }, async (host) => {
    const access = new Access(config['otlp-auth'], { ...host, tokens: host.state.tokens });
    const retention = createRetention(config, { ...host, rows: [retainedDeliveries(config, host)] });
    // Its own address has no pages that a message could name.
    const webhooks = createWebhooks(config, { ...host, webUrl: () => null });
    const building = createBuilding(config, host, retention);
    const metrics = createMetrics({
      ...host,
      kept: { ...host, runs: host.localRuns },
      features: [webhooks, ...host.clusterFeatures, ...building.features],
      connections: () => ({ web: web.connectionCounts }),
    });
    const web: WebServer = createStatusPort(config, { ...host, access, metrics, about: ABOUT_BUILDING });
    const leftovers = await openLeftovers(config, host, host.recordLog);
    const program = new Program(host, leftovers, host.recordLog, {
      retention: building.retention,
      webhooks: webhooks.components,
      sources: [host.memory, host.watch, web, ...building.sources, leftovers],
    });
    return { program, web };
  });
}

/** What goes with the building of runs, beside the host's own part in it. */
interface Building {
  readonly retention: readonly Component[];
  readonly sources: readonly Component[];
  readonly features: readonly Feature[];
}

const BUILDING_NOTHING: Building = { retention: [], sources: [], features: [] };

function createBuilding(config: Configuration, host: Host, retention: RetentionParts): Building {
  const kafka = createKafkaSource(config, host);
  return {
    retention: [...host.leased(RETENTION_LEASE, [retention.shared]), retention.local],
    sources: kafka.components,
    features: [kafka],
  };
}

/** `exec` and `follow`: keeps what the command hands over, as long as it runs. @throws as `openServer` */
export function openStore(config: Configuration, deps: AppDeps): Promise<Store> {
  return onHost(config, deps, { isShareable: false, isBuilding: true }, async (host) => {
    const removals = createRemovals(config, { ...host, rows: [retainedDeliveries(config, host)] });
    const webhooks = createWebhooks(config, { ...host, webUrl: () => null });
    const consumer = new GuardedConsumer(host.recordLog, host.disk, 'unavailable');
    const leftovers = await openLeftovers(config, host, consumer);
    const program = new Program(host, leftovers, consumer, {
      retention: [removals],
      webhooks: webhooks.components,
      sources: [leftovers],
    });
    return new Store(program, webhooks, createResend(config, host).resender);
  });
}

/** `import`: keeps what the command hands over, and judges its runs when everything is there. Nobody is notified of them. @throws as `openServer` */
export function openImport(config: Configuration, deps: AppDeps): Promise<Import> {
  const imported = new Set<TraceId>();
  return onHost(config, deps, { isShareable: false, isBuilding: true, imported }, async (host) => {
    const removals = createRemovals(config, { ...host, rows: [] });
    const consumer = new GuardedConsumer(host.recordLog, host.disk, 'refused');
    const leftovers = await openLeftovers(config, host, consumer);
    const program = new Program(host, leftovers, consumer, {
      retention: [removals],
      webhooks: [],
      runs: [],
      sources: [],
    });
    return new Import(program, imported);
  });
}
