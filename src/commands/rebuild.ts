import { existsSync } from 'node:fs';
import { openState } from '../app/open-state.js';
import { fillState, rebuildStateFile } from '../app/rebuild-state.js';
import { CliError, EXIT, type ExitCode, type Invocation } from '../cli/command.js';
import { readConfiguration, refuseShared } from '../cli/command-configuration.js';
import type { Configuration } from '../config/configuration.js';
import { cleanText } from '../core/text.js';
import { takeDataFolder } from '../storage/data-folder-lock.js';

/** What `run-bridge rebuild` does. @throws CliError, ConfigurationError, DataFolderInUseError, StoreError */
export async function rebuild(invocation: Invocation): Promise<ExitCode> {
  const { context } = invocation;
  const configuration = await readConfiguration(invocation);
  const folder = configuration['data-dir'];
  refuseShared(configuration, 'restore the database from a pg_dump');
  if (!existsSync(folder))
    throw new CliError(EXIT.failed, `${folder}: there is no data folder to rebuild the state from`);
  const lock = takeDataFolder(folder, context.pid, context.clock.nowUnixMs());
  try {
    for (const line of await rebuildFrom(folder, configuration, invocation)) {
      context.stderr.write(`${cleanText(line)}\n`);
    }
  } finally {
    lock.release();
  }
  return EXIT.ok;
}

async function rebuildFrom(
  folder: string,
  configuration: Configuration,
  { context: { clock, stop } }: Invocation,
): Promise<readonly string[]> {
  if (configuration['database-url'] === 'off') {
    const { keptAs, lines } = await rebuildStateFile(folder, clock, stop);
    return keptAs === null ? lines : [`the state of before is kept as ${keptAs}`, ...lines];
  }
  const state = await openState(configuration, clock);
  try {
    if (!(await state.rows.isEmpty())) {
      throw new CliError(
        EXIT.failed,
        'the database already holds runs and was not changed: use an empty one, and drop the other once the new one is complete',
      );
    }
    return (await fillState(state.rows, folder, stop)).lines;
  } finally {
    await state.close();
  }
}
