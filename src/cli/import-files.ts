import { join, resolve } from 'node:path';
import { App } from '../app.js';
import type { Configuration } from '../config/configuration.js';
import type { TraceId } from '../record/ids.js';
import type { RecordConsumer } from '../record/record-consumer.js';
import { importPaths } from '../source/import-paths.js';
import { REJECTS_FILE, RejectFile } from '../source/reject-file.js';
import { DataFolderInUseError } from '../store/data-folder-in-use-error.js';
import { appDeps } from './app-deps.js';
import { CliError } from './cli-error.js';
import type { Invocation } from './command-line.js';
import { createLogger } from './create-logger.js';
import { EXIT, type ExitCode } from './exit-code.js';
import { HttpConsumer } from './http-consumer.js';
import { otlpReading } from './otlp-reading.js';
import { checkBaseUrl } from './post-otlp.js';
import { ProgressLine } from './progress-line.js';
import { describeRate } from './reading-rate.js';
import { reportReading } from './report-reading.js';
import { resolveForCommand } from './resolve-for-command.js';

const DRAIN_MS = 5_000;
/** How long an import waits for destinations, in milliseconds; what they have not got then, the next `serve` sends. */
const EXPORT_MS = 60_000;

/** What `run-bridge import` does. @throws CliError, ConfigurationError, SourceError, StoreError, ConsumeError */
export async function importFiles(invocation: Invocation): Promise<ExitCode> {
  const { context, flags } = invocation;
  const { configuration, warnings } = await resolveForCommand(invocation);
  for (const warning of warnings) context.stderr.write(`run-bridge: ${warning}\n`);
  if (flags.to === undefined) return await importHere(invocation, configuration);
  const consumer = new HttpConsumer(checkBaseUrl(flags.to), context.clock, context.stop);
  const exitCode = await importTo(consumer, `sent to ${flags.to}`, invocation, configuration);
  await consumer.finish();
  return exitCode;
}

async function importHere(invocation: Invocation, configuration: Configuration): Promise<ExitCode> {
  const { context } = invocation;
  const { 'log-level': level, 'log-format': format } = configuration;
  const logger = createLogger({ level, format, stream: context.stderr, isTerminal: context.isStderrTerminal });
  const app = await App.open(configuration, appDeps(context, logger), 'import').catch((error: unknown) => {
    throw error instanceof DataFolderInUseError ? inUse(error) : error;
  });
  await app.start();
  try {
    const traceIds = new Set<TraceId>();
    const consumer: RecordConsumer = {
      consume(delivery) {
        for (const { traceId } of delivery.batches) traceIds.add(traceId);
        return app.consumer.consume(delivery);
      },
    };
    const done = `imported into ${configuration['data-dir']}/runs`;
    const exitCode = await importTo(consumer, done, invocation, configuration);
    const isExported = await app.finishImport(traceIds, context.stop, EXPORT_MS);
    if (!isExported && app.destinations.length > 0) {
      context.stderr.write('run-bridge: some of it is not exported yet; the next run-bridge serve goes on with it\n');
    }
    return context.stop.aborted ? EXIT.failed : exitCode;
  } finally {
    await app.shutdown(AbortSignal.timeout(DRAIN_MS));
  }
}

async function importTo(
  consumer: RecordConsumer,
  done: string,
  { context, operands }: Invocation,
  configuration: Configuration,
): Promise<ExitCode> {
  const { clock, stderr, stop, workingDir } = context;
  const progress = new ProgressLine(context);
  const rejectFile = new RejectFile(join(configuration['data-dir'], REJECTS_FILE), clock, (trouble) =>
    stderr.write(`run-bridge: ${trouble}\n`),
  );
  const startMs = clock.monotonicMs();
  const result = await importPaths(operands, consumer, {
    otlp: otlpReading(),
    clock,
    workingDir,
    signal: stop,
    onProgress: (at) => progress.show(at),
    onRejects: (path, rejects) => rejectFile.add(resolve(workingDir, path), rejects),
  }).finally(() => progress.end());
  const rate = describeRate({ ...result, elapsedMs: clock.monotonicMs() - startMs });
  return reportReading(result, { done, rate, rejectsPath: rejectFile.path }, stderr) ? EXIT.ok : EXIT.unreadable;
}

function inUse(error: DataFolderInUseError): CliError {
  const address = error.holder?.address;
  const hint = `hand the files to it with --to ${address ?? 'URL'}, or pass another --data-dir`;
  const holder = error.holder === undefined ? 'another process' : `process ${error.holder.pid}`;
  return new CliError(EXIT.usage, `${error.folder} is in use by ${holder}; ${hint}`, { cause: error });
}
