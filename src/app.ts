import { Access } from './app/access.js';
import { Api } from './app/api.js';
import type { AppDeps } from './app/app-deps.js';
import { onHost } from './app/host.js';
import { RETENTION_LEASE } from './app/leases.js';
import { openHook } from './app/open-hook.js';
import { Ports } from './app/ports.js';
import { Announcement, Import, openSpool, Program, Server, Store } from './app/program.js';
import { createArtifacts } from './artifact/feature.js';
import type { Configuration } from './config/configuration.js';
import type { Feature } from './feature.js';
import { createHistories } from './history/feature.js';
import { createJobs } from './job/feature.js';
import { createKafkaSource } from './kafka/feature.js';
import { GuardedConsumer } from './log/record-log.js';
import { createMetrics } from './metric/feature.js';
import { createPlatformApi } from './platform/feature.js';
import { createQueries } from './query/feature.js';
import type { TraceId } from './record/telemetry-record.js';
import { createRemovals, createRetention } from './retention/feature.js';
import { createSettingsPage } from './settings/feature.js';
import { createWebhooks, retainedDeliveries } from './webhook/feature.js';

export type { Import, Program, Server, Store } from './app/program.js';

// The program without its command line: the features that each command's program is made of.

/** `serve`: receives telemetry, and does all that there is to do. @throws ConfigurationError, StoreError, DataFolderInUseError, OutputError */
export function openServer(config: Configuration, deps: AppDeps): Promise<Server> {
  return onHost(config, deps, { isShareable: true }, async (host) => {
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
    const kafka = createKafkaSource(config, host);
    const features: readonly Feature[] = [
      webhooks,
      platform,
      jobs,
      artifacts,
      queries,
      retention,
      settings,
      histories,
      ...host.journal,
      kafka,
    ];
    const hosted = await openHook(config, host);
    const metrics = createMetrics({
      ...host,
      kept: { ...host, runs: host.ownRuns },
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
    const spool = await openSpool(config, host, host.recordLog);
    const program = new Program(host, spool, host.recordLog, {
      retention: [...host.leased(RETENTION_LEASE, [retention.shared]), retention.own],
      webhooks: webhooks.components,
      sources: [
        host.memory,
        ...hosted.components,
        ports.receivers,
        ports.web,
        ...kafka.components,
        spool,
        ...jobs.components,
        new Announcement(host, ports, stopping),
      ],
    });
    return new Server(program, ports, host);
  });
}

/** `exec` and `follow`: keeps what the command hands over, as long as it runs. @throws as `openServer` */
export function openStore(config: Configuration, deps: AppDeps): Promise<Store> {
  return onHost(config, deps, { isShareable: false }, async (host) => {
    const removals = createRemovals(config, { ...host, rows: [retainedDeliveries(config, host)] });
    const webhooks = createWebhooks(config, { ...host, webUrl: () => null });
    const consumer = new GuardedConsumer(host.recordLog, host.disk, 'unavailable');
    const spool = await openSpool(config, host, consumer);
    const program = new Program(host, spool, consumer, {
      retention: [removals],
      webhooks: webhooks.components,
      sources: [spool],
    });
    return new Store(program, webhooks);
  });
}

/** `import`: keeps what the command hands over, and judges its runs when everything is there. Nobody is notified of them. @throws as `openServer` */
export function openImport(config: Configuration, deps: AppDeps): Promise<Import> {
  const imported = new Set<TraceId>();
  return onHost(config, deps, { isShareable: false, imported }, async (host) => {
    const removals = createRemovals(config, { ...host, rows: [] });
    const consumer = new GuardedConsumer(host.recordLog, host.disk, 'refused');
    const spool = await openSpool(config, host, consumer);
    const program = new Program(host, spool, consumer, {
      retention: [removals],
      webhooks: [],
      runs: [],
      sources: [],
    });
    return new Import(program, imported);
  });
}
