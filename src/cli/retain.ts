import { randomUUID } from 'node:crypto';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { ArtifactStorage } from '../app/artifact-storage.js';
import { DatabaseLease, SEVERAL } from '../app/database-lease.js';
import { HeldLease } from '../app/held-lease.js';
import { RETENTION_LEASE } from '../app/leased.js';
import { openState } from '../app/open-state.js';
import { type RetainedKinds, retainedKinds } from '../app/retained-kinds.js';
import { SharedBucket } from '../app/shared-bucket.js';
import { sharedPlaceProblems } from '../app/sharing-problems.js';
import type { Configuration } from '../config/configuration.js';
import { ConfigurationError } from '../config/configuration-error.js';
import { NO_HOLD } from '../retention/no-hold.js';
import { Removals } from '../retention/removals.js';
import type { RetainedKind } from '../retention/retained-kind.js';
import { sweepKind } from '../retention/sweep-kind.js';
import { TelemetryBucket } from '../retention/telemetry-bucket.js';
import { TelemetryFolder } from '../retention/telemetry-folder.js';
import { ForeignSegments } from '../sink/foreign-segments.js';
import type { State } from '../store/state.js';
import { takeDataFolder } from '../store/take-data-folder.js';
import { CliError } from './cli-error.js';
import type { Invocation } from './command-line.js';
import { EXIT, type ExitCode } from './exit-code.js';
import { loggerOf } from './logger-of.js';
import type { ProcessContext } from './process-context.js';
import { refuseElsewhere } from './refuse-elsewhere.js';
import { resolveForCommand } from './resolve-for-command.js';

/** What `run-bridge retain` does. @throws CliError, ConfigurationError, DataFolderInUseError, StoreError, ArtifactError */
export async function retain(invocation: Invocation): Promise<ExitCode> {
  const { context, switches } = invocation;
  const { configuration, warnings } = await resolveForCommand(invocation);
  for (const warning of warnings) context.stderr.write(`run-bridge: ${warning}\n`);
  refuseElsewhere(configuration);
  const isDry = switches.has('dry-run');
  if (configuration.processes === 'several') {
    const problems = sharedPlaceProblems(configuration);
    if (problems.length > 0) throw new ConfigurationError(problems);
    // What is shared is in no data folder, so none is looked at.
    await sweep(configuration, context, isDry);
    return EXIT.ok;
  }
  const folder = configuration['data-dir'];
  if (!existsSync(folder)) throw new CliError(EXIT.failed, `${folder}: there is no data folder; nothing is kept`);
  const lock = isDry ? undefined : takeDataFolder(folder, context.pid, context.clock.nowUnixMs());
  try {
    await sweep(configuration, context, isDry);
  } finally {
    lock?.release();
  }
  return EXIT.ok;
}

async function sweep(configuration: Configuration, context: ProcessContext, isDry: boolean): Promise<void> {
  const { clock } = context;
  const state = await openState(configuration, clock);
  const storage = new ArtifactStorage(configuration);
  const bucket = new SharedBucket(configuration);
  const foreign = new ForeignSegments(join(configuration['data-dir'], 'foreign'), { isSynced: true, listeners: [] });
  let release = async () => {};
  try {
    if (!isDry) release = await takeTurn(configuration, context, state);
    const isShared = configuration.processes === 'several';
    const place = isShared
      ? new TelemetryBucket({ openBucket: () => bucket.open(), traces: state.cluster.traces })
      : new TelemetryFolder(configuration['data-dir']);
    const removals = new Removals({ store: state.retention, place, openArtifacts: () => storage.open() });
    if (!isDry) {
      await removals.takeUp();
      for (const removal of await removals.left()) await removals.end(removal);
      if (!isShared) await foreign.start();
    }
    const { destinations: named, environmentDestination } = configuration;
    const destinations = [...named, ...(environmentDestination === undefined ? [] : [environmentDestination])].map(
      ({ name }) => name,
    );
    // Nobody else has the folder; of what several processes share, the database removes only what none of them has.
    const parts = { state, storage, place, removals, foreign, clock, destinations, hold: NO_HOLD };
    await sweepAll(retainedKinds(configuration, parts), isShared, isDry, context);
  } finally {
    await release();
    await foreign.close();
    await storage.shutdown();
    await bucket.close();
    await state.close();
  }
}

async function sweepAll(
  { runs, rows, own }: RetainedKinds,
  isShared: boolean,
  isDry: boolean,
  { clock, stop: signal, stdout }: ProcessContext,
): Promise<void> {
  for (const kind of [...runs, ...rows, ...(isShared ? [] : own)]) {
    const found = await sweepKind(kind, { nowUnixMs: clock.nowUnixMs(), isDry, signal });
    const { count, fileCount, sizeBytes, excessBytes } = found;
    const over =
      excessBytes === 0
        ? ''
        : `; ${excessBytes} bytes more than there should be are under way, minutes old, or wait for a destination`;
    const files = kind.noun === 'runs' ? `, ${fileCount} files` : '';
    const what = limited(kind)
      ? `${isDry ? 'would remove' : 'removed'} ${count} ${kind.noun}${files}, ${sizeBytes} bytes`
      : 'no limit is set';
    stdout.write(`${kind.name}: ${what}${over}\n`);
  }
}

/** A server may be at work on the database. @returns what lets go of it @throws CliError, StoreError */
async function takeTurn(
  configuration: Configuration,
  context: ProcessContext,
  state: State,
): Promise<() => Promise<void>> {
  if (configuration['database-url'] === 'off') return async () => {};
  const logger = loggerOf(configuration, context);
  const isShared = configuration.processes === 'several';
  const holder = isShared ? SEVERAL : configuration['data-dir'];
  const lease = await DatabaseLease.take(state.leases, holder, { ...context, logger });
  if (!isShared) return () => lease.release();
  const turn = await HeldLease.take(RETENTION_LEASE, `retain ${randomUUID()}`, {
    leases: state.leases,
    ...context,
    logger,
  });
  if (turn === undefined) {
    await lease.release();
    throw new CliError(
      EXIT.usage,
      'one of the processes that share the database removes what is old, at its start and each hour: give them the retain- settings; --dry-run says what would go',
    );
  }
  return async () => {
    await turn.release();
    await lease.release();
  };
}

function limited({ limits }: RetainedKind): boolean {
  return limits.maxAgeMs !== null || limits.maxBytes !== null;
}
