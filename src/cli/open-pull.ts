import type { AppDeps } from '../app/app-deps.js';
import { openState } from '../app/open-state.js';
import { openImport, openStore, type Program } from '../app.js';
import type { Configuration } from '../config/configuration.js';
import { createFolder } from '../core/folders.js';
import type { Logger } from '../core/logger.js';
import { loadHostedRuns, type OpenedPull, type OpenPull } from '../platform/feature.js';
import type { TraceId } from '../record/telemetry-record.js';
import type { State } from '../storage/state.js';
import { askBridge } from './bridge/ask-bridge.js';
import { bridgeHeaders } from './bridge/bridge-headers.js';
import { HttpStepRegistry } from './bridge/http-step-registry.js';
import type { Invocation } from './command-line.js';
import { openIntake } from './open-intake.js';
import { packageVersion } from './package-info.js';
import { whereLines } from './where-lines.js';

/**
 * Takes the data folder, or finds the bridge that holds it; what was pulled is remembered in the folder's `state.db` in
 * both cases, which several programs may write.
 * @throws CliError, ConfigurationError, StoreError, OutputError
 */
export const openPull: OpenPull = {
  once(invocation, configuration, logger) {
    const { stop } = invocation.context;
    return open(invocation, configuration, logger, openImport, (opened, traceIds, maxMs) =>
      opened.finish(traceIds, stop, maxMs),
    );
  },
  watching(invocation, configuration, logger) {
    const { stop } = invocation.context;
    return open(invocation, configuration, logger, openStore, (opened, traceIds, maxMs) =>
      opened.finish(traceIds, AbortSignal.any([stop, AbortSignal.timeout(maxMs)])),
    );
  },
};

async function open<Opened extends { readonly program: Program }>(
  { context, flags }: Invocation,
  configuration: Configuration,
  logger: Logger,
  openFolder: (configuration: Configuration, deps: AppDeps) => Promise<Opened>,
  finishOpened: (opened: Opened, traceIds: ReadonlySet<TraceId>, maxMs: number) => Promise<boolean>,
): Promise<OpenedPull> {
  const { clock, random, pid } = context;
  const dataFolder = configuration['data-dir'];
  const intake = await openIntake({ context, flags }, configuration, logger, openFolder);
  let own: State | undefined;
  try {
    if (intake.opened === undefined) {
      createFolder(dataFolder);
      own = await openState(configuration, clock);
    }
    const store = (intake.opened?.program ?? own)?.pulls;
    if (store === undefined) throw new Error('neither the parts nor the state are open');
    const { consumer } = intake;
    const remoteRegistry = intake.url === undefined ? undefined : await registryOf(intake.url, context);
    const { HostedRuns } = await loadHostedRuns();
    const hosted = new HostedRuns(configuration, {
      store,
      // What one bridge has got, another one has not.
      ...(flags.to === undefined ? {} : { storeName: `${configuration['platform-url']} to ${flags.to}` }),
      openConsumer: () => ({ consume: (delivery) => consumer.consume(delivery), finish: () => intake.settle() }),
      registry: intake.opened?.program.registry ?? remoteRegistry,
      guards: [],
      clock,
      logger,
      pid,
      random,
      version: packageVersion(context.packageDir),
    });
    await hosted.folder.start();
    const close = async () => {
      remoteRegistry?.close();
      await hosted.folder.shutdown();
      await intake.shutdown();
      await own?.close();
    };
    const { opened, url } = intake;
    const finish: OpenedPull['finish'] = async (traceIds, maxMs) =>
      opened === undefined || (await finishOpened(opened, traceIds, maxMs)) || opened.program.destinations.length === 0;
    return { hosted, store, url, whereLines: whereLines(configuration, intake), finish, close };
  } catch (error) {
    await intake.shutdown();
    await own?.close();
    throw error;
  }
}

/** The registry of the bridge that takes the records; `undefined` where something else takes them. */
async function registryOf(
  url: string,
  { clock, stop, environment }: Invocation['context'],
): Promise<HttpStepRegistry | undefined> {
  const isBridge = (await askBridge(url)) !== undefined;
  const headers = bridgeHeaders(environment, url);
  return isBridge ? new HttpStepRegistry(url, { clock, signal: stop, headers }) : undefined;
}
