import { join } from 'node:path';
import { openStore } from '../app.js';
import type { Configuration } from '../config/configuration.js';
import { namesIn } from '../core/folders.js';
import { silentLogger } from '../core/logger.js';
import { SPOOL_FOLDER } from '../exec/feature.js';
import { appDeps } from './app-deps.js';
import type { ProcessContext } from './process-context.js';

/** How long it may take, and then closing, in milliseconds. */
const FINISH_MS = 30_000;
const CLOSE_MS = 2_000;

/**
 * Imports what commands with a killed `exec` left behind, and finishes their runs, so that a command that reads files finds
 * them complete. If nothing was left, nothing is opened; if another process has the data folder, that one does it.
 */
export async function finishLeftovers(configuration: Configuration, context: ProcessContext): Promise<void> {
  const left = await namesIn(join(configuration['data-dir'], SPOOL_FOLDER));
  if (left.length === 0) return;
  try {
    const { program } = await openStore({ ...configuration, jsonl: 'off' }, appDeps(context, silentLogger));
    try {
      await program.start();
      await program.takeInLeftovers(AbortSignal.any([context.stop, AbortSignal.timeout(FINISH_MS)]));
    } finally {
      await program.shutdown(AbortSignal.timeout(CLOSE_MS));
    }
  } catch {
    // Existing data is shown unchanged; the next exec or serve reports the problem.
  }
}
