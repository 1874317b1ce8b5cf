import type { AppDeps } from '../app/app-deps.js';
import type { Program } from '../app.js';
import type { Configuration } from '../config/configuration.js';
import { pause } from '../core/clock.js';
import type { Logger } from '../core/logger.js';
import { createSpool } from '../exec/feature.js';
import { splitScope } from '../otlp/scope-path.js';
import type { RecordConsumer } from '../record/record-batch.js';
import { DataFolderInUseError } from '../storage/data-folder-in-use-error.js';
import { appDeps } from './app-deps.js';
import { bridgeHeaders } from './bridge/bridge-headers.js';
import { HttpArtifactSink } from './bridge/http-artifact-sink.js';
import { HttpConsumer, type Patience } from './bridge/http-consumer.js';
import { HttpStepRegistry } from './bridge/http-step-registry.js';
import { checkBaseUrl, reachableUrl } from './bridge/post-otlp.js';
import { CliError } from './cli-error.js';
import type { Invocation } from './command-line.js';
import { EXIT } from './exit-code.js';
import { otlpReading } from './otlp-reading.js';

/** Where a command's records go: its own data folder, or a bridge that runs. */
export interface Intake<Opened> {
  readonly consumer: RecordConsumer;
  /** What has the data folder open; `undefined` if the records are handed over. */
  readonly opened: Opened | undefined;
  /** The bridge that receives the records; `undefined` if there is none. */
  readonly url: string | undefined;
  /**
   * Imports the folder of a command under `exec`, with its job and how it ended. @returns the number of its records.
   * @throws DataFolderInUseError while its command is running
   */
  takeInCommand(folder: string): Promise<number>;
  /** Sends what is held back until a span ends. */
  settle(): Promise<void>;
  /** @throws AggregateError when not everything ended cleanly. */
  shutdown(): Promise<void>;
}

const DRAIN_MS = 7_000;
/** How long to wait for the address of a bridge that has the folder, in milliseconds: it may be starting. */
const ADDRESS_WAIT_MS = 3_000;
const ADDRESS_POLL_MS = 100;

/**
 * Locks the data folder, or finds the bridge that has it.
 * @param open opens the folder if it is free
 * @param maxWaitMs how long to wait for an overloaded bridge at a time, in milliseconds; `null` not to wait for one
 *   that does not answer, and to ask an overloaded one 20 times. Default: no limit.
 * @throws CliError, ConfigurationError, StoreError, OutputError
 */
export async function openIntake<Opened extends { readonly program: Program }>(
  { context, flags }: Pick<Invocation, 'context' | 'flags'>,
  configuration: Configuration,
  logger: Logger,
  open: (configuration: Configuration, deps: AppDeps) => Promise<Opened>,
  maxWaitMs: number | null = Number.POSITIVE_INFINITY,
): Promise<Intake<Opened>> {
  const { clock, stop } = context;
  if (flags.to !== undefined) return handOver(checkBaseUrl(flags.to));
  for (const startMs = clock.monotonicMs(); ; await pause(clock, ADDRESS_POLL_MS, stop)) {
    try {
      const opened = await open(configuration, appDeps(context, logger));
      const { program } = opened;
      await program.start();
      const shutdown = () => program.shutdown(AbortSignal.timeout(DRAIN_MS));
      const takeInCommand = (folder: string) => program.takeInCommand(folder);
      return { consumer: program.consumer, opened, url: undefined, takeInCommand, settle: async () => {}, shutdown };
    } catch (error) {
      if (!(error instanceof DataFolderInUseError)) throw error;
      const address = error.holder?.address ?? undefined;
      if (address !== undefined) return handOver(reachableUrl(address));
      // Waits for another command to end no longer than it would for a bridge.
      const waitMs = maxWaitMs !== null && Number.isFinite(maxWaitMs) ? maxWaitMs : ADDRESS_WAIT_MS;
      if (stop.aborted || clock.monotonicMs() - startMs > waitMs) throw inUse(error);
    }
  }

  function handOver(url: string): Intake<Opened> {
    const patient = maxWaitMs === null ? undefined : patience(logger, maxWaitMs);
    const headers = bridgeHeaders(context.environment, url);
    const consumer = new HttpConsumer(url, clock, stop, patient, headers);
    const { baseUrl } = splitScope(url);
    const takeInCommand = async (folder: string) => {
      const registry = new HttpStepRegistry(baseUrl, { clock, signal: stop, headers });
      try {
        const artifacts = new HttpArtifactSink(baseUrl, clock, headers);
        const deps = {
          consumer,
          registry,
          artifacts,
          otlp: () => otlpReading(configuration['engine-names']),
          settle: () => consumer.finish(),
          clock,
          logger,
        };
        const spool = await createSpool(configuration['data-dir'], null, { ...deps, pid: context.pid });
        return await spool.takeIn(folder);
      } finally {
        registry.close();
      }
    };
    return {
      consumer,
      opened: undefined,
      url,
      takeInCommand,
      settle: () => consumer.finish(),
      shutdown: async () => {},
    };
  }
}

/** Reports once that it waits for the bridge, and once that it continues. */
function patience(logger: Logger, maxWaitMs: number): Patience {
  let isWaiting = false;
  return {
    maxWaitMs,
    onWaiting(reason) {
      if (!isWaiting) logger.warn({ reason }, 'the bridge refuses records; waiting until it accepts them');
      isWaiting = true;
    },
    onGoingOn() {
      if (isWaiting) logger.info({}, 'the bridge accepts records again');
      isWaiting = false;
    },
  };
}

/** Another process has the folder and does not listen: a command that follows or imports files. */
function inUse(error: DataFolderInUseError): CliError {
  const holder = error.holder === undefined ? 'another process' : `process ${error.holder.pid}`;
  const hint =
    'wait until it is done, pass another --data-dir, or run run-bridge serve there, which takes from several';
  return new CliError(EXIT.usage, `${error.folder} is in use by ${holder}, which does not listen; ${hint}`, {
    cause: error,
  });
}
