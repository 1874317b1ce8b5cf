import { existsSync } from 'node:fs';
import { join } from 'node:path';
import type { Configuration, ResolvedConfiguration } from '../config/configuration.js';
import { defaultMaxMemoryBytes } from '../config/default-max-memory.js';
import { findConfigurationFile } from '../config/find-configuration-file.js';
import { unreadableFilesOf } from '../config/otlp-destinations.js';
import { resolveConfiguration } from '../config/resolve-configuration.js';
import { systemMachine } from '../core/guard.js';
import { cleanLine } from '../core/text.js';
import { FOLDER_ID_FILE, JOURNAL_FOLDER, STATE_FILE } from '../storage/data-folder.js';
import { CliError, EXIT, type Invocation } from './command.js';

/**
 * The configuration of `serve` and its like, for which destinations are meant. OpenTelemetry's variables may have been set for
 * other programs: a destination of theirs that cannot be used is off, with a warning.
 * @throws ConfigurationError
 */
export async function resolveWithDestinations(invocation: Invocation): Promise<ResolvedConfiguration> {
  const resolved = await resolve(invocation, true);
  const { environmentDestination, environmentTrouble } = resolved.configuration;
  const [problem] = environmentDestination === undefined ? [] : await unreadableFilesOf(environmentDestination);
  if (problem === undefined) return resolved;
  const trouble = { ignored: [], ...environmentTrouble, offReason: problem };
  return {
    ...resolved,
    configuration: { ...resolved.configuration, environmentDestination: undefined, environmentTrouble: trouble },
    warnings: [...resolved.warnings, `${cleanLine(problem)}; nothing is exported to OTEL_EXPORTER_OTLP_ENDPOINT`],
  };
}

/** The configuration of a command that exports nothing: what is said of destinations is not read. Warnings go to standard error. @throws ConfigurationError */
export async function readConfiguration(invocation: Invocation): Promise<Configuration> {
  return sayWarnings(await resolve(invocation, false), invocation);
}

/** The same with destinations. @throws ConfigurationError */
export async function readExportConfiguration(invocation: Invocation): Promise<Configuration> {
  return sayWarnings(await resolveWithDestinations(invocation), invocation);
}

/** Writes warnings to standard error. */
export function sayWarnings(
  { configuration, warnings }: ResolvedConfiguration,
  { context }: Invocation,
): Configuration {
  for (const warning of warnings) context.stderr.write(`run-bridge: ${warning}\n`);
  return configuration;
}

async function resolve({ context, flags }: Invocation, isExporting: boolean): Promise<ResolvedConfiguration> {
  const { environment, homeDir, workingDir } = context;
  const maxMemoryBytes = defaultMaxMemoryBytes(systemMachine);
  const found = findConfigurationFile({ flag: flags.config, environment, workingDir, homeDir });
  const reader = found === undefined ? undefined : await import('../config/read-configuration-file.js');
  const file = found && reader?.readConfigurationFile(found, { environment, homeDir, isExporting });
  const sources = { flags, environment, workingDir, homeDir, maxMemoryBytes, isExporting };
  const resolved = resolveConfiguration(sources, file);
  return { ...resolved, warnings: resolved.warnings.map(cleanLine) };
}

/**
 * For commands that list or change the data of a server: refuses to open an empty state in the data
 * folder when the server's is in PostgreSQL.
 * @throws CliError if the settings do not contain the database
 */
export function refuseElsewhere(configuration: Pick<Configuration, 'data-dir' | 'database-url'>): void {
  const { 'data-dir': folder, 'database-url': url } = configuration;
  const isElsewhere = existsSync(join(folder, FOLDER_ID_FILE)) && !existsSync(join(folder, STATE_FILE));
  if (url !== 'off' || !isElsewhere) return;
  throw new CliError(
    EXIT.usage,
    `${folder}: its state is in PostgreSQL: set DATABASE_URL to the database that serve is started with`,
  );
}

/**
 * For commands that read runs of a data folder: where several processes share the work, runs are in their bucket.
 * @param instead what to do, as half a sentence
 * @throws CliError where that is so
 */
export function refuseShared(configuration: Pick<Configuration, 'data-dir' | 'processes'>, instead: string): void {
  if (!isShared(configuration)) return;
  throw new CliError(
    EXIT.failed,
    `${configuration['data-dir']}: several processes share the work, and their runs are in the bucket and the database, not here: ${instead}`,
  );
}

/** Whether a data folder belongs to one of several processes: by the settings, or because it contains only copies of runs. */
export function isShared(configuration: Pick<Configuration, 'data-dir' | 'processes'>): boolean {
  const { processes, 'data-dir': dataFolder } = configuration;
  if (processes === 'several') return true;
  return existsSync(join(dataFolder, JOURNAL_FOLDER)) && !existsSync(join(dataFolder, 'runs'));
}
