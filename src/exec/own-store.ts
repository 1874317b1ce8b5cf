import { App } from '../app.js';
import { appDeps } from '../cli/app-deps.js';
import type { ProcessContext } from '../cli/process-context.js';
import type { Configuration } from '../config/configuration.js';
import type { Logger } from '../core/logger.js';
import { PatientConsumer } from '../files/patient-consumer.js';
import { ConsumeError, type RecordConsumer } from '../record/record-batch.js';
import type { ExecTarget } from './exec-target.js';

/**
 * Opens the data folder for this process alone.
 * @throws DataFolderInUseError, StoreError, ConfigurationError
 */
export async function openOwnStore(
  configuration: Configuration,
  context: ProcessContext,
  { logger, giveUp, onTrouble }: { logger: Logger; giveUp: AbortSignal; onTrouble: (message: string) => void },
): Promise<ExecTarget> {
  const app = await App.open(configuration, appDeps(context, logger), 'follow');
  await app.start();
  const watched: RecordConsumer = {
    async consume(delivery) {
      try {
        await app.consumer.consume(delivery);
      } catch (error) {
        if (error instanceof ConsumeError) onTrouble(error.message);
        throw error;
      }
    },
  };
  return {
    consumer: new PatientConsumer(watched, context.clock, giveUp),
    registry: app.registry,
    artifacts: app.artifacts,
    spoolTo: null,
    where: `${configuration['data-dir']}/runs`,
    settle: async () => {},
    async finish(traceIds, deadline) {
      const isExported = await app.finishCommand(traceIds, deadline);
      if (isExported || app.destinations.length === 0) return null;
      return 'not everything is exported yet; the next start of run-bridge continues';
    },
    close: (deadline) => app.shutdown(deadline),
  };
}
