import { existsSync } from 'node:fs';
import { ArtifactStorage } from '../app/artifact-storage.js';
import { DatabaseLease } from '../app/database-lease.js';
import { openState } from '../app/open-state.js';
import { removalsOf, retainedKinds } from '../app/retained-kinds.js';
import type { Configuration } from '../config/configuration.js';
import type { RetainedKind } from '../retention/retained-kind.js';
import { sweepKind } from '../retention/sweep-kind.js';
import { takeDataFolder } from '../store/take-data-folder.js';
import { CliError } from './cli-error.js';
import type { Invocation } from './command-line.js';
import { createLogger } from './create-logger.js';
import { EXIT, type ExitCode } from './exit-code.js';
import type { ProcessContext } from './process-context.js';
import { resolveForCommand } from './resolve-for-command.js';

/** What `run-bridge retain` does. @throws CliError, ConfigurationError, DataFolderInUseError, StoreError, ArtifactError */
export async function retain(invocation: Invocation): Promise<ExitCode> {
  const { context, switches } = invocation;
  const { configuration, warnings } = await resolveForCommand(invocation);
  for (const warning of warnings) context.stderr.write(`run-bridge: ${warning}\n`);
  const folder = configuration['data-dir'];
  if (!existsSync(folder)) throw new CliError(EXIT.failed, `${folder}: there is no data folder; nothing is kept`);
  const isDry = switches.has('dry-run');
  const lock = isDry ? undefined : takeDataFolder(folder, context.pid, context.clock.nowUnixMs());
  try {
    await sweep(configuration, context, isDry);
  } finally {
    lock?.release();
  }
  return EXIT.ok;
}

async function sweep(configuration: Configuration, context: ProcessContext, isDry: boolean): Promise<void> {
  const { clock, stop: signal, stdout } = context;
  const state = await openState(configuration, clock);
  const storage = new ArtifactStorage(configuration);
  let lease: DatabaseLease | undefined;
  try {
    // A server on another data folder may have the database.
    if (!isDry && configuration['database-url'] !== 'off') {
      const logger = createLogger({
        ...{ level: configuration['log-level'], format: configuration['log-format'] },
        ...{ stream: context.stderr, isTerminal: context.isStderrTerminal },
      });
      lease = await DatabaseLease.take(state.leases, configuration['data-dir'], { ...context, logger });
    }
    const removals = removalsOf(configuration, { state, storage });
    if (!isDry) for (const removal of await removals.takeUp()) await removals.end(removal);
    const { destinations: named, environmentDestination } = configuration;
    const destinations = [...named, ...(environmentDestination === undefined ? [] : [environmentDestination])].map(
      ({ name }) => name,
    );
    // Nobody else has the folder, or nothing is moved.
    const hold = { whileStill: (_traceIds: unknown, action: () => Promise<boolean>) => action() };
    const kinds = retainedKinds(configuration, removals, { state, storage, clock, destinations, hold });
    for (const kind of kinds) {
      const { kind: name, ...found } = await sweepKind(kind, { nowUnixMs: clock.nowUnixMs(), isDry, signal });
      const { runCount, fileCount, sizeBytes, excessBytes } = found;
      const over =
        excessBytes === 0
          ? ''
          : `; ${excessBytes} bytes more than there should be are under way, minutes old, or wait for a destination`;
      const what = limited(kind)
        ? `${isDry ? 'would remove' : 'removed'} ${runCount} runs, ${fileCount} files, ${sizeBytes} bytes`
        : 'no limit is set';
      stdout.write(`${name}: ${what}${over}\n`);
    }
  } finally {
    await lease?.release();
    await storage.shutdown();
    await state.close();
  }
}

function limited({ limits }: RetainedKind): boolean {
  return limits.maxAgeMs !== null || limits.maxBytes !== null;
}
