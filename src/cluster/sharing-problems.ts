import type { Configuration } from '../config/configuration.js';

/**
 * Returns why a configuration cannot be used for one of several processes, one sentence each; empty for a single process.
 * @param isServing whether the program listens; other commands have no role
 */
export function sharingProblems(
  configuration: Pick<Configuration, 'database-url' | 'artifacts' | 'webhookKey' | 'journal' | 'processes' | 'role'>,
  isServing: boolean,
): readonly string[] {
  const { processes, role } = configuration;
  const isOneOfSeveral = processes === 'several';
  if (!isOneOfSeveral && !(isServing && PARTIAL_ROLES.includes(role))) return [];
  const problems: string[] = [];
  if (!isOneOfSeveral) {
    problems.push(`role: ${role} is a part of what several processes do: set processes to several, or role to all`);
  }
  problems.push(...sharedLocationProblems(configuration));
  if (configuration.webhookKey === null) {
    problems.push(
      'processes: several share the secrets of webhooks: set RUN_BRIDGE_WEBHOOK_KEY, the same for all of them (make one with: openssl rand -base64 32)',
    );
  }
  if (configuration.journal === null) {
    problems.push(
      'processes: several share a journal: add `journal: kafka: brokers: HOST:PORT` to the configuration file, the same for all of them',
    );
  }
  if (!isServing) problems.push('processes: with several processes this command reports to one of them: pass --to URL');
  return problems;
}

/** Roles that need other processes. */
const PARTIAL_ROLES: readonly Configuration['role'][] = ['build', 'web'];

/** Returns why a program cannot reach the database and the bucket that several processes share, one sentence each. */
export function sharedLocationProblems(
  configuration: Pick<Configuration, 'database-url' | 'artifacts'>,
): readonly string[] {
  const problems: string[] = [];
  if (configuration['database-url'] === 'off') {
    problems.push('processes: several share a database: set DATABASE_URL to one in PostgreSQL, or processes to one');
  }
  if (configuration.artifacts === 'folder') {
    problems.push('processes: several share a bucket: set artifacts to s3://BUCKET, or processes to one');
  }
  return problems;
}
