import { randomUUID } from 'node:crypto';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { ArtifactStorage } from '../app/artifact-storage.js';
import { DatabaseLease, RETENTION_LEASE, SEVERAL, takeLease } from '../app/leases.js';
import { openState } from '../app/open-state.js';
import { sharedBucket } from '../app/shared-bucket.js';
import { sharedLocationProblems } from '../app/sharing-problems.js';
import type { Configuration } from '../config/configuration.js';
import { ConfigurationError } from '../config/configuration-error.js';
import type { Logger } from '../core/logger.js';
import { ForeignSegments } from '../log/foreign-segments.js';
import {
  type RetainedKind,
  type RetentionHost,
  retainOnce,
  type SweepResult,
  sharedTelemetry,
} from '../retention/feature.js';
import { takeDataFolder } from '../storage/data-folder-lock.js';
import type { State } from '../storage/state.js';
import { retainedDeliveries } from '../webhook/feature.js';
import { CliError } from './cli-error.js';
import type { Invocation } from './command-line.js';
import { EXIT, type ExitCode } from './exit-code.js';
import { loggerOf } from './logger-of.js';
import type { ProcessContext } from './process-context.js';
import { refuseElsewhere } from './refuse-elsewhere.js';
import { resolveWithDestinations } from './resolve-for-command.js';

/** What `run-bridge retain` does. @throws CliError, ConfigurationError, DataFolderInUseError, StoreError, ArtifactError */
export async function retain(invocation: Invocation): Promise<ExitCode> {
  const { context, switches } = invocation;
  const { configuration, warnings } = await resolveWithDestinations(invocation);
  for (const warning of warnings) context.stderr.write(`run-bridge: ${warning}\n`);
  refuseElsewhere(configuration);
  const isDry = switches.has('dry-run');
  if (configuration.processes === 'several') {
    const problems = sharedLocationProblems(configuration);
    if (problems.length > 0) throw new ConfigurationError(problems);
    // Shared data is in no data folder, so none is opened.
    await sweep(configuration, context, isDry);
    return EXIT.ok;
  }
  const folder = configuration['data-dir'];
  if (!existsSync(folder)) throw new CliError(EXIT.failed, `${folder}: the data folder does not exist`);
  const lock = isDry ? undefined : takeDataFolder(folder, context.pid, context.clock.nowUnixMs());
  try {
    await sweep(configuration, context, isDry);
  } finally {
    lock?.release();
  }
  return EXIT.ok;
}

async function sweep(configuration: Configuration, context: ProcessContext, isDry: boolean): Promise<void> {
  const { clock, stop, stdout } = context;
  await withRetention(configuration, context, { isDry }, async (host) => {
    const swept = retainOnce(configuration, host, { nowUnixMs: clock.nowUnixMs(), isDry, signal: stop });
    for await (const [kind, found] of swept) stdout.write(`${kind.name}: ${describe(kind, found, isDry)}\n`);
  });
}

/** What retention works with where no server runs. */
export type CommandRetentionHost = RetentionHost & { readonly state: State; readonly logger: Logger };

/**
 * Opens what retention works with, and closes it after `body`. The caller has the data folder.
 * @param options.isDry whether nothing is to be changed: then a server may be running on the database
 * @throws CliError, StoreError
 */
export async function withRetention<T>(
  configuration: Configuration,
  context: ProcessContext,
  { isDry }: { readonly isDry: boolean },
  body: (host: CommandRetentionHost) => Promise<T>,
): Promise<T> {
  const { clock } = context;
  const state = await openState(configuration, clock);
  const storage = new ArtifactStorage(configuration);
  const bucket = sharedBucket(configuration);
  const foreign = new ForeignSegments(join(configuration['data-dir'], 'foreign'), { isSynced: true, listeners: [] });
  let release = async () => {};
  try {
    if (!isDry) release = await takeTurn(configuration, context, state);
    const sharedFiles =
      configuration.processes === 'several'
        ? sharedTelemetry({ openBucket: () => bucket.get(), traces: state.journal })
        : undefined;
    const { destinations: named, environmentDestination } = configuration;
    const destinations = [...named, ...(environmentDestination === undefined ? [] : [environmentDestination])].map(
      ({ name }) => name,
    );
    const nowUnixMs = () => clock.nowUnixMs();
    const rows = [retainedDeliveries(configuration, { state, nowUnixMs })];
    const openArtifacts = () => storage.open();
    const logger = loggerOf(configuration, context);
    return await body({ state, openArtifacts, sharedFiles, foreign, destinations, rows, clock, logger });
  } finally {
    await release();
    await foreign.close();
    await storage.shutdown();
    (await bucket.ifNeeded())?.close();
    await state.close();
  }
}

/** The result of a kind as text. */
function describe({ noun, limits }: RetainedKind, found: SweepResult, isDry: boolean): string {
  const { count, fileCount, sizeBytes, excessBytes } = found;
  const files = noun === 'runs' ? `, ${fileCount} files` : '';
  const what =
    limits.maxAgeMs !== null || limits.maxBytes !== null
      ? `${isDry ? 'would remove' : 'removed'} ${count} ${noun}${files}, ${sizeBytes} bytes`
      : 'no limit is set';
  if (excessBytes === 0) return what;
  return `${what}; ${excessBytes} bytes more than there should be are under way, minutes old, or wait for a destination`;
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
