import { join, resolve } from 'node:path';
import { CliError, EXIT, type ExitCode, type Invocation } from '../cli/command.js';
import { readConfiguration, resolveWithDestinations, sayWarnings } from '../cli/command-configuration.js';
import { loggerOf } from '../cli/logger.js';
import { otlpReading } from '../cli/otlp-reading.js';
import { ProgressLine } from '../cli/progress-line.js';
import type { Configuration } from '../config/configuration.js';
import { destinationNames } from '../config/otlp-destinations.js';
import { cleanLine, counted, readableBytes } from '../core/text.js';
import type { Intake, IntakeHost } from '../feature.js';
import { EngineSightings } from '../otlp/engine-sightings.js';
import { asImported } from '../record/attributes.js';
import type { Delivery, RecordConsumer } from '../record/record-batch.js';
import type { TraceId } from '../record/telemetry-record.js';
import { DataFolderInUseError } from '../storage/data-folder.js';
import { importPaths } from './import-paths.js';
import type { OtlpReading } from './otlp-json-file.js';
import { reportReading } from './reading-counter.js';
import { REJECTS_FILE, RejectFile } from './reject-file.js';

/** How long an import waits for destinations, in milliseconds; what they have not got then, the next `serve` sends. */
const EXPORT_MS = 60_000;

/** What `run-bridge import` does. @throws CliError, ConfigurationError, SourceError, StoreError, OutputError, ConsumeError */
export async function importFiles(invocation: Invocation, host: IntakeHost): Promise<ExitCode> {
  const { context, switches } = invocation;
  const { stderr, stop } = context;
  const configuration = await configurationOf(invocation);
  const { 'data-dir': dataFolder } = configuration;
  const logger = loggerOf(configuration, context);
  const intake = await host.openIntake(invocation, configuration, logger, { isImport: true, maxWaitMs: null });
  try {
    const traceIds = new Set<TraceId>();
    const beganUnixMs = context.clock.nowUnixMs();
    // For records that are stored here, nobody is notified.
    const isQuiet = intake.url !== undefined && !switches.has('notify');
    const consumer: RecordConsumer = {
      consume(delivery) {
        for (const { traceId } of delivery.batches) traceIds.add(traceId);
        return intake.consumer.consume(isQuiet ? imported(delivery, beganUnixMs) : delivery);
      },
    };
    const done = intake.url === undefined ? `imported into ${dataFolder}/runs` : `sent to ${intake.url}`;
    const sightings = new EngineSightings(logger);
    const otlp = otlpReading(configuration['engine-names'], sightings);
    const exitCode = await importTo({ ...intake, consumer }, otlp, done, invocation, configuration);
    if (!stop.aborted) await intake.settle();
    if (!(await intake.finish(traceIds, stop, EXPORT_MS))) {
      stderr.write('run-bridge: not everything is exported yet; the next run-bridge serve continues\n');
    }
    return stop.aborted ? EXIT.failed : exitCode;
  } finally {
    await intake.shutdown();
  }
}

/** Destinations are a part of an import only where it has some; what else was said of them is no matter of its own. */
async function configurationOf(invocation: Invocation): Promise<Configuration> {
  const isHandedOver = invocation.flags.to !== undefined;
  const resolved = isHandedOver ? undefined : await resolveWithDestinations(invocation);
  const isExporting = resolved !== undefined && destinationNames(resolved.configuration).length > 0;
  return isExporting ? sayWarnings(resolved, invocation) : readConfiguration(invocation);
}

/** The records marked as those of an import, so that the bridge that takes them triggers no events for them. */
function imported(delivery: Delivery, beganUnixMs: number): Delivery {
  const batches = delivery.batches.map(({ traceId, resource, records }) => ({
    ...{ traceId, records },
    resource: asImported(resource, beganUnixMs),
  }));
  return { ...delivery, batches };
}

async function importTo(
  intake: Pick<Intake, 'consumer' | 'takeInCommand' | 'isOfCommand'>,
  otlp: OtlpReading,
  done: string,
  { context, operands }: Invocation,
  configuration: Configuration,
): Promise<ExitCode> {
  const { clock, stderr, stop, workingDir } = context;
  const progress = new ProgressLine(context);
  const rejectFile = new RejectFile(join(configuration['data-dir'], REJECTS_FILE), clock, (trouble) =>
    stderr.write(`run-bridge: ${cleanLine(trouble)}\n`),
  );
  const startMs = clock.monotonicMs();
  const folders = operands.filter((operand) => intake.isOfCommand(resolve(workingDir, operand)));
  const files = operands.filter((operand) => !folders.includes(operand));
  let commandRecords = 0;
  for (const folder of folders) commandRecords += await takeIn(resolve(workingDir, folder), intake);
  const read = await importPaths(files, intake.consumer, {
    otlp,
    clock,
    workingDir,
    signal: stop,
    onProgress: (at) => progress.show(at),
    onRejects: (path, rejects) => rejectFile.add(resolve(workingDir, path), rejects),
  }).finally(() => progress.end());
  const result = {
    ...read,
    recordCount: read.recordCount + commandRecords,
    fileCount: read.fileCount + folders.length,
  };
  const rate = describeRate({ ...result, elapsedMs: clock.monotonicMs() - startMs });
  return reportReading(result, { done, rate, rejectsPath: rejectFile.path }, stderr) ? EXIT.ok : EXIT.unreadable;
}

/** The folder of a command that `exec` could not import: its records, job and end belong together. @throws CliError */
async function takeIn(folder: string, intake: Pick<Intake, 'takeInCommand'>): Promise<number> {
  try {
    return await intake.takeInCommand(folder);
  } catch (error) {
    if (!(error instanceof DataFolderInUseError)) throw error;
    throw new CliError(EXIT.failed, `${folder} belongs to a running command; its exec imports it`, {
      cause: error,
    });
  }
}

/** What was read, and in what time. */
export interface ReadingRate {
  readonly fileCount: number;
  readonly recordCount: number;
  /** Size on disk; 0 if unknown. */
  readonly byteCount: number;
  readonly elapsedMs: number;
}

/** How much was read and how fast, for example `from 3 files in 2.1 s (5,900 records and 8 MiB a second)`. */
export function describeRate({ fileCount, recordCount, byteCount, elapsedMs }: ReadingRate): string {
  // Below a tenth of a second a rate is meaningless.
  const seconds = Math.max(0.1, elapsedMs / 1000);
  const perSecond = Math.round(recordCount / seconds).toLocaleString('en');
  const bytes = byteCount === 0 ? '' : ` and ${readableBytes(Math.round(byteCount / seconds))}`;
  const files = counted(fileCount, 'file');
  return `from ${files} in ${seconds.toFixed(1)} s (${perSecond} records${bytes} a second)`;
}
