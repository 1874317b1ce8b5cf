import { join } from 'node:path';
import type { AppDeps } from '../app/app-deps.js';
import type { ProcessContext } from '../cli/command.js';
import { systemMachine } from '../core/guard.js';
import type { Logger } from '../core/logger.js';
import { packageVersion } from '../core/package-file.js';

/** What an App gets from the process. */
export function appDeps(context: ProcessContext, logger: Logger): AppDeps {
  const { clock, stdout, pid, ownHosts, random, environment, nodePath, nodeVersion } = context;
  return {
    clock,
    stdout,
    pid,
    ownHosts,
    random,
    environment,
    nodePath,
    nodeVersion,
    entryPath: join(context.packageDir, 'dist/main.js'),
    logger,
    machine: systemMachine,
    version: packageVersion(context.packageDir),
  };
}
