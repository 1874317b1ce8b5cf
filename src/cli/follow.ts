import { join } from 'node:path';
import { openStore } from '../app.js';
import { cleanLine } from '../core/text.js';
import { createFollower, PatientConsumer, REJECTS_FILE, ReadingTally, RejectFile } from '../files/feature.js';
import type { Invocation } from './command-line.js';
import { EXIT, type ExitCode } from './exit-code.js';
import { loggerOf } from './logger-of.js';
import { openIntake } from './open-intake.js';
import { reportReading } from './report-reading.js';
import { resolveWithDestinations } from './resolve-for-command.js';
import { whereLines } from './where-lines.js';

/** What `run-bridge follow` does. @throws CliError, ConfigurationError, StoreError, OutputError, ConsumeError */
export async function follow(invocation: Invocation): Promise<ExitCode> {
  const { context, operands } = invocation;
  const { clock, stop, stderr, workingDir } = context;
  const { configuration, warnings } = await resolveWithDestinations(invocation);
  for (const warning of warnings) stderr.write(`run-bridge: ${warning}\n`);
  const { 'data-dir': dataFolder } = configuration;
  const logger = loggerOf(configuration, context);
  const intake = await openIntake(invocation, configuration, logger, openStore);
  const rejectFile = new RejectFile(join(dataFolder, REJECTS_FILE), clock, (reason) => logger.error({}, reason));
  const tally = new ReadingTally();
  stderr.write(`follows   ${cleanLine(operands.join(' '))}\n`);
  for (const line of whereLines(configuration, intake)) stderr.write(`${line}\n`);
  try {
    const follower = await createFollower(
      operands,
      { dataFolder, url: intake.url ?? '' },
      {
        consumer: new PatientConsumer(intake.consumer, clock, stop),
        clock,
        workingDir,
        settle: () => intake.settle(),
        async onTaken(path, { recordCount, rejects }) {
          tally.addRecords(recordCount);
          for (const reject of rejects) tally.addReject({ ...reject, place: `${path} ${reject.place}` });
          await rejectFile.add(path, rejects);
          const [first] = rejects;
          if (first === undefined) return;
          logger.warn({ path, place: first.place, count: rejects.length }, 'skipped lines that could not be read');
        },
        onTrouble: (reason) => logger.warn({ reason }, 'paused following a file'),
      },
    );
    await follower.run(stop);
  } finally {
    await intake.shutdown();
  }
  const done = intake.url === undefined ? `taken into ${dataFolder}/runs` : `sent to ${intake.url}`;
  return reportReading(tally.result(), { done, rejectsPath: rejectFile.path }, stderr) ? EXIT.ok : EXIT.unreadable;
}
