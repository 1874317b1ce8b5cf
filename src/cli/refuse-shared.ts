import { existsSync } from 'node:fs';
import { join } from 'node:path';
import type { Configuration } from '../config/configuration.js';
import { sharedLogFolder } from '../run/shared-record-log.js';
import { CliError } from './cli-error.js';
import { EXIT } from './exit-code.js';

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
  return existsSync(sharedLogFolder(dataFolder)) && !existsSync(join(dataFolder, 'runs'));
}
