import { constants } from 'node:os';
import { join } from 'node:path';
import type { Writable } from 'node:stream';
import {
  CliError,
  type CommandExit,
  EXIT,
  type ExitCode,
  type Invocation,
  type ProcessContext,
} from '../cli/command.js';
import { readExportConfiguration } from '../cli/command-configuration.js';
import { loggerOf } from '../cli/logger.js';
import type { Configuration } from '../config/configuration.js';
import { ConfigurationError } from '../config/configuration-error.js';
import { reasonOf } from '../core/errors.js';
import { cleanLine } from '../core/text.js';
import type { Intake, IntakeHost } from '../feature.js';
import { ReadingCounter, reportReading } from './reading-counter.js';
import { RecordPipe } from './record-pipe.js';
import { REJECTS_FILE, RejectFile } from './reject-file.js';

/** How long to wait for destinations at the end, in milliseconds; the next start sends the rest. */
const EXPORT_MS = 10_000;
/** How long to wait for a bridge that does not answer, in milliseconds; lines are passed on meanwhile. */
const BRIDGE_WAIT_MS = 30_000;
const INPUT = 'standard input';

/**
 * Runs `run-bridge pipe`. Whatever fails with recording, lines are passed on to the end; only an invalid command
 * line or configuration makes it fail.
 * @throws CliError
 */
export async function pipe(invocation: Invocation, host: IntakeHost): Promise<ExitCode | CommandExit> {
  const { context } = invocation;
  if (context.isStdinTerminal) {
    throw new CliError(
      EXIT.usage,
      'standard input is a terminal; use it like this: dbt build --log-format otel | run-bridge pipe',
    );
  }
  const output = new PassOn(context.stdout);
  const input = new PipeInput(context, (error) => complain(context, `internal error: ${String(error)}`));
  const passAll = async () => {
    for await (const bytes of input.bytes()) await output.write(bytes);
    await output.end();
  };
  const working = async () => {
    try {
      const configuration = await readExportConfiguration(invocation);
      return await keepRecords(invocation, host, configuration, input, output);
    } catch (error) {
      const problems = error instanceof ConfigurationError ? error.problems : [reasonOf(error)];
      for (const problem of problems)
        complain(context, `${problem}; nothing more is recorded, everything is passed on`);
      await passAll();
      return error instanceof ConfigurationError ? EXIT.usage : EXIT.ok;
    }
  };
  return await Promise.race([working(), input.cut]);
}

async function keepRecords(
  invocation: Invocation,
  host: IntakeHost,
  given: Configuration,
  input: PipeInput,
  output: PassOn,
): Promise<ExitCode> {
  const { context, switches } = invocation;
  const { clock, stderr } = context;
  // Standard output belongs to the lines that are passed on.
  const configuration = { ...given, jsonl: 'off' };
  const dataFolder = configuration['data-dir'];
  const logger = loggerOf(configuration, context);
  // Signals end the engine, and with it the pipe: everything until then is recorded.
  const patient = { flags: invocation.flags, context: { ...context, stop: new AbortController().signal } };
  const opening = host.openIntake(patient, configuration, logger, { isImport: true, maxWaitMs: BRIDGE_WAIT_MS });
  opening.catch(() => undefined);
  const rejectFile = new RejectFile(join(dataFolder, REJECTS_FILE), clock, (reason) => logger.error({}, reason));
  const counter = new ReadingCounter();
  const records = new RecordPipe(
    { isTee: switches.has('tee') },
    {
      clock,
      consumer: { consume: async (delivery) => (await opening).consumer.consume(delivery) },
      passOn: (bytes) => output.write(bytes),
      async onReject(reject) {
        counter.addReject(reject);
        await rejectFile.add(INPUT, [reject]);
      },
      onFailed: (error) =>
        complain(context, `the records are not kept, and passed on from here on: ${reasonOf(error)}`),
    },
  );
  await records.run(input.bytes());
  await output.end();
  counter.addRecords(records.store.recordCount);
  try {
    const intake = await opening;
    await finish(invocation, intake, records);
    const done = intake.url === undefined ? `taken into ${dataFolder}/runs` : `sent to ${intake.url}`;
    return reportReading(counter.result(), { done, rejectsPath: rejectFile.path }, stderr) ? EXIT.ok : EXIT.unreadable;
  } catch (error) {
    // Records were reported when the first of them arrived.
    if (!records.store.hasFailed) complain(context, reasonOf(error));
    return EXIT.ok;
  }
}

/** Judges the runs and waits for destinations. */
async function finish({ context }: Invocation, intake: Intake, { store }: RecordPipe): Promise<void> {
  try {
    await intake.settle();
    if (!(await intake.finish(store.traceIds, new AbortController().signal, EXPORT_MS))) {
      context.stderr.write('run-bridge: not everything is exported yet; the next run-bridge serve continues\n');
    }
  } finally {
    await intake.shutdown();
  }
}

function complain({ stderr }: Invocation['context'], message: string): void {
  stderr.write(`run-bridge: ${cleanLine(message)}\n`);
}

/** Passes bytes on to the reader of a stream, and continues silently when the reader has gone: `… | head` is not a failure. */
export class PassOn {
  private isGone = false;
  private waiting: (() => void)[] = [];

  constructor(private readonly stream: Writable) {
    const gone = () => {
      this.isGone = true;
      this.goOn();
    };
    stream.on('error', gone);
    stream.on('close', gone);
    stream.on('drain', () => this.goOn());
  }

  /** Resolves when there is room for more, or the reader has gone. */
  async write(bytes: Uint8Array): Promise<void> {
    if (this.isGone || bytes.length === 0 || this.stream.write(bytes)) return;
    await new Promise<void>((resolve) => this.waiting.push(resolve));
  }

  /** Resolves when everything was written. */
  async end(): Promise<void> {
    if (this.isGone || this.stream.writableLength === 0) return;
    await new Promise<void>((resolve) => this.stream.write('', () => resolve()));
  }

  private goOn(): void {
    const waiting = this.waiting;
    this.waiting = [];
    for (const resolve of waiting) resolve();
  }
}

/** A signal so soon after the first is the same one, in milliseconds. */
const SAME_SIGNAL_MS = 500;

/**
 * Standard input of a pipe. It is read to its end in spite of signals: Ctrl+C also reaches the engine, whose last
 * output is wanted. A second SIGTERM or SIGHUP ends it at once.
 */
export class PipeInput {
  /** Resolves with how the process is to end when it is not to read on. */
  readonly cut: Promise<CommandExit>;
  private isCut = false;

  /** @param onFault receives an uncaught error of the program; lines are still passed on. */
  constructor(
    private readonly context: ProcessContext,
    onFault: (error: unknown) => void,
  ) {
    const { clock, stdin } = context;
    let firstMs: number | undefined;
    this.cut = new Promise((resolve) => {
      const onSignal = (signal: NodeJS.Signals): void => {
        const nowMs = clock.monotonicMs();
        if (signal === 'SIGINT') return;
        firstMs ??= nowMs;
        if (nowMs - firstMs <= SAME_SIGNAL_MS) return;
        this.isCut = true;
        stdin.destroy();
        resolve({ exitCode: 128 + constants.signals[signal], signal });
      };
      context.takeOver({ signals: ['SIGINT', 'SIGTERM', 'SIGHUP'], onSignal, onFault });
    });
  }

  /** The input; can be requested again for the rest after its reader has failed. */
  async *bytes(): AsyncGenerator<Uint8Array> {
    try {
      yield* this.context.stdin.iterator({ destroyOnReturn: false });
    } catch (error) {
      if (!this.isCut) throw error;
    }
  }
}
