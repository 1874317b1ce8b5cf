import { type DuckDBConnection, DuckDBInstance } from '@duckdb/node-api';
import type { QueryFiles } from '../query-files.js';
import type { QueryLimits } from '../query-limits.js';
import { textList, viewStatements } from './view-sql.js';

/** What is set before anything else: nothing is fetched, nothing is loaded, nothing is written beside memory. */
const CLOSED = {
  autoinstall_known_extensions: 'false',
  autoload_known_extensions: 'false',
  allow_community_extensions: 'false',
  allow_unsigned_extensions: 'false',
  allow_persistent_secrets: 'false',
  temp_directory: '',
  max_temp_directory_size: '0B',
};

/**
 * Opens a database in memory with the views over these files. From then on it reads those files and no others, and no
 * statement can change that: external access is off, and the configuration is locked. The process must stand in the runs'
 * folder.
 */
export async function openSandbox(
  files: QueryFiles,
  limits: Pick<QueryLimits, 'memoryMegabytes' | 'threads'>,
): Promise<DuckDBConnection> {
  const instance = await DuckDBInstance.create(':memory:', {
    ...CLOSED,
    memory_limit: `${limits.memoryMegabytes}MB`,
    threads: String(limits.threads),
  });
  const connection = await instance.connect();
  await connection.run("SET TimeZone = 'UTC'");
  for (const statement of viewStatements(files)) await connection.run(statement);
  // Allowed files could be written, too: `checkStatement` lets nothing through that writes.
  await connection.run(`SET allowed_paths = ${textList([...files.parquet, ...files.summaries])}`);
  await connection.run('SET enable_external_access = false');
  await connection.run('SET lock_configuration = true');
  return connection;
}
