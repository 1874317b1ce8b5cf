import type { Clock } from '../component/clock.js';
import type { Logger } from '../component/logger.js';
import { packageFile } from '../component/package-file.js';
import type { Configuration } from '../config/configuration.js';
import { DEFAULT_RETRY_POLICY, RetryPolicy } from '../delivery/retry-policy.js';
import type { ThreadCluster } from '../export-thread/messages.js';
import type { State } from '../store/state.js';
import { LateExports, type LateThread } from './late-exports.js';
import { checkDestinations } from './otlp-destinations.js';

/** What exports are opened with. */
export interface ExportOpening {
  readonly clock: Clock;
  readonly logger: Logger;
  /** Addresses and names of this machine, to notice a destination that is the program itself. */
  readonly ownHosts: readonly string[];
  /** Uniform in [0, 1). */
  readonly random: () => number;
  /** The program's version. */
  readonly version: string;
  /** Where several processes share the database: this one. */
  readonly cluster: () => ThreadCluster | null;
}

/** Exports that are being opened. */
export interface OpeningExports {
  /** To be called once, with the open state. `undefined` where nothing is exported. */
  with(state: State): Promise<LateThread | undefined>;
  /** Ends what was begun where it never came to that. */
  close(): Promise<void>;
}

/**
 * Begins to open the destinations of a configuration in a thread of their own. Where it is told before what they are, and
 * that is `isLate`, nobody waits for the thread.
 * @throws ConfigurationError when one cannot be used.
 */
export async function openExportsLate(
  configuration: Configuration,
  deps: ExportOpening,
  isLate: boolean,
): Promise<OpeningExports> {
  const places = isLate ? await checkDestinations(configuration, deps.ownHosts) : undefined;
  const open = await threadOpener(configuration, deps);
  const begun = places === undefined ? open?.() : undefined;
  // Awaited later; until then its failure is nobody's.
  begun?.catch(() => undefined);
  let late: LateThread | undefined;
  return {
    async with({ cursors }) {
      if (places === undefined || open === undefined) return begun;
      const { clock, logger, random } = deps;
      const retryPolicy = new RetryPolicy(DEFAULT_RETRY_POLICY, random);
      late = new LateExports(places, { open, cursors, clock, logger, retryPolicy });
      return late;
    },
    async close() {
      const thread = late ?? (await begun?.catch(() => undefined));
      await thread?.close();
    },
  };
}

/** What starts the thread that exports; `undefined` where nothing is exported, which saves its memory and time. */
async function threadOpener(
  configuration: Configuration,
  { clock, logger, ownHosts, version, random, cluster }: ExportOpening,
): Promise<(() => Promise<LateThread>) | undefined> {
  const { destinations, environmentDestination } = configuration;
  if (destinations.length === 0 && environmentDestination === undefined) return undefined;
  const { ExportThread } = await import('../export-thread/export-thread.js');
  return () => {
    const retryPolicy = new RetryPolicy(DEFAULT_RETRY_POLICY, random);
    const entry = packageFile('dist/export-thread.js');
    return ExportThread.open(
      { configuration, ownHosts, version, cluster: cluster() },
      { entry, clock, logger, retryPolicy },
    );
  };
}
