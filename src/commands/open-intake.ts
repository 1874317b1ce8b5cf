import { existsSync } from 'node:fs';
import { join } from 'node:path';
import type { AppDeps } from '../app/app-deps.js';
import { openImport, openStore, type Program } from '../app.js';
import { bridgeHeaders, checkBaseUrl } from '../cli/bridge/bridge.js';
import { HttpArtifactSink } from '../cli/bridge/http-artifact-sink.js';
import { HttpConsumer, type Patience } from '../cli/bridge/http-consumer.js';
import { HttpStepRegistry } from '../cli/bridge/http-step-registry.js';
import { CliError, EXIT, type Invocation } from '../cli/command.js';
import { otlpReading } from '../cli/otlp-reading.js';
import type { Configuration } from '../config/configuration.js';
import { pause } from '../core/clock.js';
import { reachableUrl } from '../core/http-listener.js';
import type { Logger } from '../core/logger.js';
import { createLeftovers, ENTRY_FILE } from '../exec/feature.js';
import type { Intake, IntakeOptions } from '../feature.js';
import { splitScope } from '../otlp/scope-path.js';
import { DataFolderInUseError } from '../storage/data-folder.js';
import { appDeps } from './app-deps.js';

const DRAIN_MS = 7_000;
/** How long to wait for the address of a bridge that has the folder, in milliseconds: it may be starting. */
const ADDRESS_WAIT_MS = 3_000;
const ADDRESS_POLL_MS = 100;

/** See `CommandHost.openIntake`. */
export async function openIntake(
  { context, flags }: Pick<Invocation, 'context' | 'flags'>,
  configuration: Configuration,
  logger: Logger,
  { isImport, maxWaitMs = Number.POSITIVE_INFINITY }: IntakeOptions,
): Promise<Intake> {
  const { clock, stop } = context;
  const isOfCommand = (folder: string) => existsSync(join(folder, ENTRY_FILE));
  if (flags.to !== undefined) return handOver(checkBaseUrl(flags.to));
  for (const startMs = clock.monotonicMs(); ; await pause(clock, ADDRESS_POLL_MS, stop)) {
    try {
      const { program, finish } = await openFolder(configuration, appDeps(context, logger), isImport);
      await program.start();
      return {
        consumer: program.consumer,
        program,
        url: undefined,
        whereLines: writingLines(configuration, program),
        isOfCommand,
        takeInCommand: (folder) => program.takeInCommand(folder),
        settle: async () => {},
        finish,
        shutdown: () => program.shutdown(AbortSignal.timeout(DRAIN_MS)),
      };
    } catch (error) {
      if (!(error instanceof DataFolderInUseError)) throw error;
      const address = error.holder?.address ?? undefined;
      if (address !== undefined) return handOver(reachableUrl(address));
      // Waits for another command to end no longer than it would for a bridge.
      const waitMs = maxWaitMs !== null && Number.isFinite(maxWaitMs) ? maxWaitMs : ADDRESS_WAIT_MS;
      if (stop.aborted || clock.monotonicMs() - startMs > waitMs) throw inUse(error);
    }
  }

  function handOver(url: string): Intake {
    const patient = maxWaitMs === null ? undefined : patience(logger, maxWaitMs);
    const headers = bridgeHeaders(context.environment, url);
    const consumer = new HttpConsumer(url, clock, stop, patient, headers);
    const { baseUrl } = splitScope(url);
    const takeInCommand = async (folder: string) => {
      const registry = new HttpStepRegistry(baseUrl, { clock, signal: stop, headers });
      try {
        const leftovers = await createLeftovers(configuration['data-dir'], null, {
          consumer,
          registry,
          artifacts: new HttpArtifactSink(baseUrl, clock, headers),
          otlp: () => otlpReading(configuration['engine-names']),
          settle: () => consumer.finish(),
          clock,
          logger,
          pid: context.pid,
        });
        return await leftovers.takeIn(folder);
      } finally {
        registry.close();
      }
    };
    return {
      consumer,
      program: undefined,
      url,
      whereLines: [`sends to  ${url}`],
      isOfCommand,
      takeInCommand,
      settle: () => consumer.finish(),
      finish: async () => true,
      shutdown: async () => {},
    };
  }
}

/** The program on the data folder, and what finishes its runs. */
async function openFolder(
  configuration: Configuration,
  deps: AppDeps,
  isImport: boolean,
): Promise<{ readonly program: Program; readonly finish: Intake['finish'] }> {
  if (isImport) {
    const opened = await openImport(configuration, deps);
    return { program: opened.program, finish: (...of) => opened.finish(...of) };
  }
  const opened = await openStore(configuration, deps);
  return {
    program: opened.program,
    finish: (traceIds, stop, exportMs) =>
      opened.finish(traceIds, AbortSignal.any([stop, AbortSignal.timeout(exportMs)])),
  };
}

function writingLines(configuration: Configuration, { destinations }: Program): readonly string[] {
  const { 'data-dir': dataFolder, parquet, jsonl } = configuration;
  const formats = ['JSONL', ...(parquet ? ['Parquet'] : [])].join(' and ');
  const streamed = jsonl === 'off' ? '' : `, streamed to ${jsonl === '-' ? 'standard output' : jsonl}`;
  const exported = destinations.map(([name, where]) => `${name} (${where})`).join(', ');
  return [`writes    ${join(dataFolder, 'runs')} (${formats}${streamed})`, `exports   ${exported || 'nothing'}`];
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
