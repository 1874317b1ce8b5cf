import { join } from 'node:path';
import type { Logger } from '../component/logger.js';
import type { Configuration } from '../config/configuration.js';
import { ConfigurationError } from '../config/configuration-error.js';
import { ReadingTally } from '../source/reading-tally.js';
import { RecordPipe } from '../source/record-pipe.js';
import { REJECTS_FILE, RejectFile } from '../source/reject-file.js';
import { CliError } from './cli-error.js';
import type { Invocation } from './command-line.js';
import { createLogger } from './create-logger.js';
import { EXIT, type ExitCode } from './exit-code.js';
import { type Intake, openIntake } from './open-intake.js';
import { PassOn } from './pass-on.js';
import { reportReading } from './report-reading.js';
import { resolveForCommand } from './resolve-for-command.js';

/** How long destinations are waited for at the end, in milliseconds; what they have not got then, the next start sends. */
const EXPORT_MS = 10_000;
/** How long a bridge that does not answer is waited for, in milliseconds; meanwhile lines are passed on. */
const BRIDGE_WAIT_MS = 30_000;
const INPUT = 'standard input';

/**
 * What `run-bridge pipe` does. Whatever goes wrong with keeping records, lines are passed on to the end, and only a wrong
 * command line or configuration makes it fail.
 * @throws CliError
 */
export async function pipe(invocation: Invocation): Promise<ExitCode> {
  const { context, switches } = invocation;
  const { stdin, stderr, clock, isStdinTerminal } = context;
  if (isStdinTerminal) {
    throw new CliError(EXIT.usage, 'nothing comes in; use it as in: dbt build --log-format otel | run-bridge pipe');
  }
  const output = new PassOn(context.stdout);
  const passAll = async () => {
    for await (const bytes of stdin) await output.write(bytes as Uint8Array);
    await output.end();
  };
  const resolved = await resolveForCommand(invocation).catch(async (error: unknown) => {
    if (!(error instanceof ConfigurationError)) throw error;
    for (const problem of error.problems) stderr.write(`run-bridge: ${problem}; nothing is kept, all is passed on\n`);
    await passAll();
    return undefined;
  });
  if (resolved === undefined) return EXIT.usage;
  for (const warning of resolved.warnings) stderr.write(`run-bridge: ${warning}\n`);
  // Standard output belongs to the lines that are passed on.
  const configuration = { ...resolved.configuration, jsonl: 'off' };
  const dataFolder = configuration['data-dir'];
  const logger = loggerOf(invocation, configuration);
  const opening = open(invocation, configuration, logger);
  opening.catch(() => undefined);
  const rejectFile = new RejectFile(join(dataFolder, REJECTS_FILE), clock, (reason) => logger.error({}, reason));
  const tally = new ReadingTally();
  const records = new RecordPipe(
    { isTee: switches.has('tee') },
    {
      clock,
      consumer: { consume: async (delivery) => (await opening).consumer.consume(delivery) },
      passOn: (bytes) => output.write(bytes),
      async onReject(reject) {
        tally.addReject(reject);
        await rejectFile.add(INPUT, [reject]);
      },
      onFailed: (error) =>
        stderr.write(`run-bridge: the records are not kept, and passed on from here on: ${messageOf(error)}\n`),
    },
  );
  await records.run(stdin);
  await output.end();
  tally.addRecords(records.store.recordCount);
  const intake = await opening.catch(() => undefined);
  if (intake === undefined) {
    if (!records.store.hasFailed) await opening.catch((error: unknown) => complain(invocation, error));
    return EXIT.ok;
  }
  await finish(invocation, intake, records).catch((error: unknown) => complain(invocation, error));
  const done = intake.url === undefined ? `taken into ${dataFolder}/runs` : `sent to ${intake.url}`;
  return reportReading(tally.result(), { done, rejectsPath: rejectFile.path }, stderr) ? EXIT.ok : EXIT.unreadable;
}

function loggerOf({ context }: Invocation, configuration: Configuration): Logger {
  const { 'log-level': level, 'log-format': format } = configuration;
  return createLogger({ level, format, stream: context.stderr, isTerminal: context.isStderrTerminal });
}

/** Signals end the engine, and with it the pipe: what comes until then is kept. */
function open({ context, flags }: Invocation, configuration: Configuration, logger: Logger): Promise<Intake> {
  const patient = { context: { ...context, stop: new AbortController().signal }, flags };
  return openIntake(patient, configuration, logger, 'import', BRIDGE_WAIT_MS);
}

/** Judges the runs and waits for destinations. */
async function finish({ context }: Invocation, intake: Intake, { store }: RecordPipe): Promise<void> {
  const { app } = intake;
  try {
    if (app === undefined) await intake.settle();
    else if (!(await app.finishImport(store.traceIds, new AbortController().signal, EXPORT_MS))) {
      context.stderr.write('run-bridge: some of it is not exported yet; the next run-bridge serve goes on with it\n');
    }
  } finally {
    await intake.shutdown();
  }
}

function complain({ context }: Invocation, error: unknown): void {
  context.stderr.write(`run-bridge: ${messageOf(error)}\n`);
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
