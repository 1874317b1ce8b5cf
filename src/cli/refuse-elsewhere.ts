import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { FOLDER_ID_FILE } from '../app/folder-id.js';
import type { Configuration } from '../config/configuration.js';
import { STATE_FILE } from '../storage/data-folder-lock.js';
import { CliError } from './cli-error.js';
import { EXIT } from './exit-code.js';

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
