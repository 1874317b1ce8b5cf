import { Access } from './app/access.js';
import { Api } from './app/api.js';
import type { AppDeps } from './app/app-deps.js';
import { onHost } from './app/host.js';
import { RETENTION_LEASE } from './app/leases.js';
import { openHook } from './app/open-hook.js';
import { Ports } from './app/ports.js';
import { Announcement, type Import, openSpool, Program, type Server, type Store } from './app/program.js';
import { createArtifacts } from './artifact/feature.js';
import type { Configuration } from './config/configuration.js';
import type { Feature } from './feature.js';
import { createJobs } from './job/feature.js';
import { GuardedConsumer } from './log/record-log.js';
import { createMetrics } from './metric/feature.js';
import { createPlatformApi } from './platform/feature.js';
import { createQueries } from './query/feature.js';
import type { TraceId } from './record/telemetry-record.js';
import { createRemovals, createRetention } from './retention/feature.js';
import { createWebhooks, retainedDeliveries } from './webhook/feature.js';

export type { Import, Program, Server, Store } from './app/program.js';

// The program without its command line: what each command's program is made of, destinations first.

/** `serve`: receives telemetry, and does all that there is to do. @throws ConfigurationError, StoreError, DataFolderInUseError, OutputError */
export function openServer(config: Configuration, deps: AppDeps): Promise<Server> {
  return onHost(config, deps, { isShareable: true }, async (host) => {
    const stopping = new AbortController();
    const access = new Access(config['otlp-auth'], {
      tokens: host.state.tokens,
      clock: host.clock,
      logger: host.logger,
    });
    const retention = createRetention(config, { ...host, rows: [retainedDeliveries(config, host)] });
    const webhooks = createWebhooks(config, { ...host, webUrl: () => ports.webUrl });
    const jobs = createJobs(config, { ...host, credentials: () => access.credentialsFor(config.http.host) });
    const platform = createPlatformApi(config, {
      ...host,
      factsOf: jobs.factsOf,
      outputOf: (stepId) => jobs.outputOf(stepId),
    });
    const artifacts = createArtifacts(config, host);
    const queries = createQueries(config, { ...host, stopping: stopping.signal });
    const { hosted, hook } = await openHook(config, host);
    const features: readonly Feature[] = [webhooks, platform, jobs, artifacts, queries, retention];
    const metrics = createMetrics({
      ...host,
      runs: host.ownRuns,
      startedUnixMs: host.clock.nowUnixMs(),
      connections: () => ports.connectionCounts,
      added: features.flatMap((feature) => feature.metrics ?? []),
    });
    const api = new Api(config, {
      ...host,
      access,
      artifacts,
      metrics,
      features,
      otlpUrl: () => ports.otlpUrl,
      stopping: stopping.signal,
    });
    const ports: Ports = await Ports.create(config, { ...host, access, api, hook });
    const spool = await openSpool(config, host, host.recordLog);
    const program = new Program(host, {
      consumer: host.recordLog,
      spool,
      components: [
        ...host.components.storage,
        ...host.leased(RETENTION_LEASE, [retention.shared]),
        ...host.components.rowBackup,
        retention.own,
        ...host.components.exports,
        ...webhooks.components,
        ...host.components.projections,
        ...host.components.runs,
        ...host.components.recordLog,
        host.disk,
        host.memory,
        ...hosted,
        ports.receivers,
        ports.web,
        spool,
        ...jobs.components,
        new Announcement(host, ports, stopping),
      ],
    });
    return {
      program,
      ports,
      async makeFirstToken() {
        const { makeFirstToken } = await import('./api/first-token.js');
        return makeFirstToken(host.state.tokens, config['data-dir'], host.clock);
      },
      async makeSignInLink() {
        const { makeSignInLink } = await import('./api/sign-in-links.js');
        return `${ports.webUrl}${await makeSignInLink(host.state.tokens, host.clock)}`;
      },
    };
  });
}

/** `exec` and `follow`: keeps what the command hands over, as long as it runs. @throws as `openServer` */
export function openStore(config: Configuration, deps: AppDeps): Promise<Store> {
  return onHost(config, deps, { isShareable: false }, async (host) => {
    const removals = createRemovals(config, { ...host, rows: [retainedDeliveries(config, host)] });
    const webhooks = createWebhooks(config, { ...host, webUrl: () => null });
    const consumer = new GuardedConsumer(host.recordLog, host.disk, 'unavailable');
    const spool = await openSpool(config, host, consumer);
    const program = new Program(host, {
      consumer,
      spool,
      components: [
        ...host.components.storage,
        removals,
        ...host.components.rowBackup,
        ...host.components.exports,
        ...webhooks.components,
        ...host.components.projections,
        ...host.components.runs,
        ...host.components.recordLog,
        host.disk,
        spool,
      ],
    });
    return {
      program,
      async finish(traceIds, deadline) {
        await program.settled(traceIds, deadline);
        await program.takeInLeftovers(deadline);
        await webhooks.flush(AbortSignal.any([deadline, AbortSignal.timeout(WEBHOOK_FLUSH_MS)]));
        return await program.exported(deadline);
      },
    };
  });
}

/** `import`: keeps what the command hands over, and judges its runs when everything is there. Nobody is notified of them. @throws as `openServer` */
export function openImport(config: Configuration, deps: AppDeps): Promise<Import> {
  const imported = new Set<TraceId>();
  return onHost(config, deps, { isShareable: false, imported }, async (host) => {
    const removals = createRemovals(config, { ...host, rows: [] });
    const consumer = new GuardedConsumer(host.recordLog, host.disk, 'refused');
    const spool = await openSpool(config, host, consumer);
    const program = new Program(host, {
      consumer,
      spool,
      components: [
        ...host.components.storage,
        removals,
        ...host.components.rowBackup,
        ...host.components.exports,
        ...host.components.projections,
        ...host.components.recordLog,
        host.disk,
      ],
    });
    return {
      program,
      async finish(traceIds, stop, exportMs) {
        for (const traceId of [...traceIds, ...spool.traceIds]) imported.add(traceId);
        await host.ownRuns.start();
        await program.settled(imported, stop);
        const deadline = AbortSignal.any([stop, AbortSignal.timeout(exportMs)]);
        const isExported = await program.exported(deadline);
        await host.ownRuns.shutdown(deadline);
        return isExported;
      },
    };
  });
}

/** A command's end waits no longer for webhooks, in milliseconds: the next start goes on with what is left. */
const WEBHOOK_FLUSH_MS = 10_000;
