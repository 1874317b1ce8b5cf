import { askBridge, bridgeHeaders } from '../cli/bridge/bridge.js';
import { HttpStepRegistry } from '../cli/bridge/http-step-registry.js';
import type { Invocation } from '../cli/command.js';
import type { Configuration } from '../config/configuration.js';
import { createFolder } from '../core/folders.js';
import type { Logger } from '../core/logger.js';
import { packageVersion } from '../core/package-file.js';
import type { CommandHost } from '../feature.js';
import type { TraceId } from '../record/telemetry-record.js';
import type { State } from '../storage/state.js';
import { HostedRuns } from './hosted-runs.js';

/** What a pull works with. */
export interface OpenedPull {
  readonly hosted: HostedRuns;
  /** The bridge that takes the records; `undefined` where they go into the data folder. */
  readonly url: string | undefined;
  /** Where records go, as `serve` says it. */
  readonly whereLines: readonly string[];
  /**
   * Finishes the runs that came, and exports them as far as destinations take them in `maxMs`.
   * @returns whether everything was exported
   */
  finish(traceIds: ReadonlySet<TraceId>, maxMs: number): Promise<boolean>;
  /** @throws AggregateError when not everything ended cleanly. */
  close(): Promise<void>;
}

/** What pulling needs of the program. */
export type PullHost = Pick<CommandHost, 'openIntake' | 'openState'>;

/**
 * Takes the data folder, or finds the bridge that holds it; what was pulled is remembered in the folder's `state.db` in
 * both cases, which several programs may write.
 * @param isWatching whether each run is finished when it has come, and not all of them at the end
 * @throws CliError, ConfigurationError, StoreError, OutputError
 */
export async function openPull(
  { context, flags }: Invocation,
  configuration: Configuration,
  logger: Logger,
  host: PullHost,
  isWatching: boolean,
): Promise<OpenedPull> {
  const { clock, random, pid, stop } = context;
  const dataFolder = configuration['data-dir'];
  const intake = await host.openIntake({ context, flags }, configuration, logger, { isImport: !isWatching });
  const { consumer, program, url, whereLines } = intake;
  let own: State | undefined;
  try {
    if (program === undefined) {
      createFolder(dataFolder);
      own = await host.openState(configuration, clock);
    }
    const state = program?.state ?? own;
    if (state === undefined) throw new Error('neither the parts nor the state are open');
    const remoteRegistry = url === undefined ? undefined : await registryOf(url, context);
    const hosted = new HostedRuns(configuration, {
      state,
      // What one bridge has got, another one has not.
      ...(flags.to === undefined ? {} : { storeName: `${configuration['platform-url']} to ${flags.to}` }),
      openConsumer: () => ({ consume: (delivery) => consumer.consume(delivery), finish: () => intake.settle() }),
      registry: program?.registry ?? remoteRegistry,
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
    const finish: OpenedPull['finish'] = (traceIds, maxMs) => intake.finish(traceIds, stop, maxMs);
    return { hosted, url, whereLines, finish, close };
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
