import { join } from 'node:path';
import { EXIT, type ExitCode, type Invocation } from '../cli/command.js';
import { readExportConfiguration } from '../cli/command-configuration.js';
import { loggerOf } from '../cli/logger.js';
import { cleanLine } from '../core/text.js';
import type { IntakeHost } from '../feature.js';
import { FileFollower } from './file-follower.js';
import { FollowPositions, POSITIONS_FOLDER } from './follow-positions.js';
import { ReadingCounter, reportReading } from './reading-counter.js';
import { REJECTS_FILE, RejectFile } from './reject-file.js';
import { RetryingConsumer } from './retrying-consumer.js';

/** What `run-bridge follow` does. @throws CliError, ConfigurationError, StoreError, OutputError, ConsumeError */
export async function follow(invocation: Invocation, host: IntakeHost): Promise<ExitCode> {
  const { context, operands } = invocation;
  const { clock, stop, stderr, workingDir } = context;
  const configuration = await readExportConfiguration(invocation);
  const { 'data-dir': dataFolder } = configuration;
  const logger = loggerOf(configuration, context);
  const intake = await host.openIntake(invocation, configuration, logger, { isImport: false });
  const rejectFile = new RejectFile(join(dataFolder, REJECTS_FILE), clock, (reason) => logger.error({}, reason));
  const counter = new ReadingCounter();
  stderr.write(`follows   ${cleanLine(operands.join(' '))}\n`);
  for (const line of intake.whereLines) stderr.write(`${line}\n`);
  try {
    const positions = new FollowPositions(join(dataFolder, POSITIONS_FOLDER), intake.url ?? '');
    await positions.prune(clock.nowUnixMs());
    const follower = new FileFollower(operands, {
      positions,
      consumer: new RetryingConsumer(intake.consumer, clock, stop),
      clock,
      workingDir,
      settle: () => intake.settle(),
      async onTaken(path, { recordCount, rejects }) {
        counter.addRecords(recordCount);
        for (const reject of rejects) counter.addReject({ ...reject, place: `${path} ${reject.place}` });
        await rejectFile.add(path, rejects);
        const [first] = rejects;
        if (first === undefined) return;
        logger.warn({ path, place: first.place, count: rejects.length }, 'skipped lines that could not be read');
      },
      onTrouble: (reason) => logger.warn({ reason }, 'paused following a file'),
    });
    await follower.run(stop);
  } finally {
    await intake.shutdown();
  }
  const done = intake.url === undefined ? `taken into ${dataFolder}/runs` : `sent to ${intake.url}`;
  return reportReading(counter.result(), { done, rejectsPath: rejectFile.path }, stderr) ? EXIT.ok : EXIT.unreadable;
}
