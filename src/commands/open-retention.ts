import { randomUUID } from 'node:crypto';
import { join } from 'node:path';
import { openState } from '../app/open-state.js';
import { ArtifactStorage } from '../artifact/feature.js';
import { CliError, EXIT, type ProcessContext } from '../cli/command.js';
import { loggerOf } from '../cli/logger.js';
import {
  DatabaseLease,
  openSharedTelemetry,
  RETENTION_LEASE,
  SEVERAL,
  sharedLocationProblems,
  takeLease,
} from '../cluster/feature.js';
import type { Configuration } from '../config/configuration.js';
import { ConfigurationError } from '../config/configuration-error.js';
import { PassthroughSegments } from '../log/passthrough-segments.js';
import type { CommandRetentionHost } from '../retention/commands.js';
import type { State } from '../storage/state.js';
import { retainedDeliveries } from '../webhook/feature.js';

/**
 * Opens what retention works with, and closes it after `body`. The caller has the data folder.
 * @param options.isDry whether nothing is to be changed: then a server may be running on the database
 * @throws CliError, ConfigurationError, StoreError
 */
export async function withRetention<T>(
  configuration: Configuration,
  context: ProcessContext,
  { isDry }: { readonly isDry: boolean },
  body: (host: CommandRetentionHost) => Promise<T>,
): Promise<T> {
  const { clock } = context;
  const isShared = configuration.processes === 'several';
  const problems = isShared ? sharedLocationProblems(configuration) : [];
  if (problems.length > 0) throw new ConfigurationError(problems);
  const state = await openState(configuration, clock);
  const storage = new ArtifactStorage(configuration, isDry);
  const shared = isShared ? await openSharedTelemetry(configuration, state.journal) : undefined;
  const passthrough = new PassthroughSegments(join(configuration['data-dir'], 'foreign'), {
    isSynced: true,
    listeners: [],
  });
  let release = async () => {};
  try {
    if (!isDry) release = await takeTurn(configuration, context, state);
    const { destinations: named, environmentDestination } = configuration;
    const destinations = [...named, ...(environmentDestination === undefined ? [] : [environmentDestination])].map(
      ({ name }) => name,
    );
    const nowUnixMs = () => clock.nowUnixMs();
    const rows = [retainedDeliveries(configuration, { state, nowUnixMs })];
    const openArtifacts = () => storage.open();
    const logger = loggerOf(configuration, context);
    return await body({
      state,
      openArtifacts,
      sharedFiles: shared?.storage,
      passthrough,
      destinations,
      rows,
      clock,
      logger,
    });
  } finally {
    await release();
    await passthrough.close();
    await storage.shutdown();
    await shared?.close();
    await state.close();
  }
}

/** A server may be running on the database. @returns a function that releases it @throws CliError, StoreError */
async function takeTurn(
  configuration: Configuration,
  context: ProcessContext,
  state: State,
): Promise<() => Promise<void>> {
  if (configuration['database-url'] === 'off') return async () => {};
  const logger = loggerOf(configuration, context);
  const isShared = configuration.processes === 'several';
  const holder = isShared ? SEVERAL : configuration['data-dir'];
  const deps = { leases: state.leases, clock: context.clock, logger };
  const lease = await DatabaseLease.take(holder, deps);
  if (!isShared) return () => lease.release();
  const turn = await takeLease(RETENTION_LEASE, `retain ${randomUUID()}`, deps);
  if (turn === undefined) {
    await lease.release();
    throw new CliError(
      EXIT.usage,
      'the processes that share the database remove old data themselves, at their start and each hour: give them the retain- settings; --dry-run shows what would be removed',
    );
  }
  return async () => {
    await turn.release();
    await lease.release();
  };
}
