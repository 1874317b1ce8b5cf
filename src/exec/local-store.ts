import { join } from 'node:path';
import { silentLogger } from '../core/logger.js';
import { RetryingConsumer } from '../files/feature.js';
import { ConsumeError, type RecordConsumer } from '../record/record-batch.js';
import { LocalStepRegistry } from '../run/local-step-registry.js';
import { ScopeFinder } from '../run/scope-finder.js';
import { createDataFolder, takeDataFolder } from '../storage/data-folder-lock.js';
import type { StepPosition, StepStart } from '../storage/steps.js';
import type { BridgeChoice, ExecTarget, StepTarget, TargetChoice } from './exec-target.js';

/** How long artifacts are stored in the data folder before the command's caller goes on, in milliseconds. */
const MAX_ARTIFACTS_MS = 1_000;

/**
 * Opens the data folder for this process alone.
 * @throws DataFolderInUseError, StoreError, ConfigurationError
 */
export async function openLocalStore({
  configuration,
  context,
  host,
  logger,
  giveUp,
  onTrouble,
}: TargetChoice): Promise<ExecTarget> {
  const store = await host.openStore(configuration, context, logger);
  const { program } = store;
  await program.start();
  const watched: RecordConsumer = {
    async consume(delivery) {
      try {
        await program.consumer.consume(delivery);
      } catch (error) {
        if (error instanceof ConsumeError) onTrouble(error.message);
        throw error;
      }
    },
  };
  return {
    consumer: new RetryingConsumer(watched, context.clock, giveUp),
    registry: program.registry,
    artifacts: program.artifacts,
    maxArtifactsMs: configuration.artifacts === 'folder' ? MAX_ARTIFACTS_MS : Number.POSITIVE_INFINITY,
    leftFor: null,
    where: `${configuration['data-dir']}/runs`,
    settle: async () => {},
    async finish(traceIds, deadline) {
      const isExported = await store.finish(traceIds, deadline);
      if (isExported || program.destinations.length === 0) return null;
      return 'not everything is exported yet; the next start of run-bridge continues';
    },
    close: (deadline) => program.shutdown(deadline),
  };
}

/**
 * Opens of the data folder what a step is noted in, and nothing else, for this process alone: all that a command without
 * telemetry needs.
 * @throws DataFolderInUseError, StoreError
 */
export async function openLocalRegistry(choice: TargetChoice): Promise<StepTarget> {
  const { clock, pid } = choice.context;
  const folder = choice.configuration['data-dir'];
  const lock = takeDataFolder(folder, pid, clock.nowUnixMs());
  try {
    const { registry, close } = await openRegistry(choice);
    return {
      registry,
      leftFor: null,
      where: join(folder, 'runs'),
      settle: async () => {},
      finish: async () => null,
      async close() {
        await close();
        lock.release();
      },
    };
  } catch (error) {
    lock.release();
    throw error;
  }
}

/**
 * Registers a command in the state of the data folder. Another command may hold the folder meanwhile: several processes
 * may change the state, as `token` does while a bridge runs.
 * @throws StoreError, StepRegistryError
 */
export async function registerInFolder(choice: BridgeChoice, start: StepStart): Promise<StepPosition> {
  createDataFolder(choice.configuration['data-dir']);
  const { registry, close } = await openRegistry(choice);
  try {
    return await registry.register(start);
  } finally {
    await close();
  }
}

async function openRegistry({ configuration, context: { clock }, host }: BridgeChoice) {
  const state = await host.openState(configuration, clock);
  const { executions: store, runs } = state;
  const scopes = new ScopeFinder(configuration);
  const registry = new LocalStepRegistry({ store, runs, listeners: [], scopes, clock, logger: silentLogger });
  try {
    // Opening the whole store reports what is wrong with a declaration.
    await state.scopes.declare(configuration, clock.nowUnixMs());
    return { registry, close: () => state.close() };
  } catch (error) {
    await state.close();
    throw error;
  }
}
