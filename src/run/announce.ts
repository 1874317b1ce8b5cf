import type { RunEvent } from './run-event.js';
import type { RunSummary } from './run-summary.js';
import type { RunTrackerDeps } from './run-tracker-config.js';

/**
 * Tells every listener of an event, one after the other; a finished run's `run.json` is written first. What fails is logged.
 * @returns whether the file was written and every listener took it.
 */
export async function announce(
  event: RunEvent,
  deps: Pick<RunTrackerDeps, 'listeners' | 'logger' | 'file'>,
): Promise<boolean> {
  let isAccepted = event.type !== 'finished' || (await writeFile(event.run, deps));
  for (const listener of deps.listeners) {
    try {
      await listener.onRunEvent(event);
    } catch (error) {
      isAccepted = false;
      deps.logger.error(
        { traceId: event.run.traceId, event: event.type, error: String(error) },
        'A listener failed on a run; it is told again in a while',
      );
    }
  }
  return isAccepted;
}

async function writeFile(run: RunSummary, { file, logger }: Pick<RunTrackerDeps, 'logger' | 'file'>): Promise<boolean> {
  try {
    await file?.write(run);
    return true;
  } catch (error) {
    logger.error(
      { traceId: run.traceId, error: String(error) },
      'run.json could not be written, which is tried again; check that the data folder is writable and has space',
    );
    return false;
  }
}
