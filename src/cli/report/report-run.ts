import type { TraceId } from '../../record/ids.js';
import type { CommandMeasures } from '../../run/measures/command-measures.js';
import { compareWithEarlier } from '../../run/measures/comparison.js';
import { measuresDocument } from '../../run/measures/measures-document.js';
import { readMeasures } from '../../run/measures/read-measures.js';
import type { RecordLogReader } from '../../sink/record-log.js';
import { RecordLogFiles } from '../../sink/record-log-files.js';
import type { State } from '../../store/state.js';
import type { Invocation } from '../command-line.js';
import { EXIT, type ExitCode } from '../exit-code.js';
import { finishLeftovers } from '../finish-leftovers.js';
import { askFolderState } from '../folder-state.js';
import { refuseShared } from '../refuse-shared.js';
import { resolveForCommand } from '../resolve-for-command.js';
import { CommandPlaces, earlierLengthsMs } from './earlier-lengths.js';
import { findRuns } from './find-runs.js';
import { readRun } from './read-run.js';
import { reportText } from './report-text.js';
import { RunFiles } from './run-files.js';

/**
 * What `run-bridge report` does. It reads files, and numbers of runs from the state, so a bridge may be at work on the data
 * folder; what a killed `exec` left there is finished first.
 * @throws CliError, ConfigurationError
 */
export async function reportRun(invocation: Invocation): Promise<ExitCode> {
  const { context, operands, switches } = invocation;
  const { configuration, warnings } = await resolveForCommand(invocation);
  for (const warning of warnings) context.stderr.write(`run-bridge: ${warning}\n`);
  refuseShared(configuration, 'ask any of the processes with GET /api/run-bridge/v1/runs/RUN/measures');
  await finishLeftovers(configuration, context);
  const files = new RunFiles(configuration['data-dir']);
  const recent = await files.recent();
  let damagedCount = 0;
  const reader = stoppable(
    new RecordLogFiles(configuration['data-dir'], () => {
      damagedCount += 1;
    }),
    context.stop,
  );
  const reports = [];
  const [named] = operands;
  const ask = <Answer>(question: (state: State) => Promise<Answer>) =>
    askFolderState(configuration, context.clock, question);
  const tracesOf = async (runId: number) => (await ask(({ traces }) => traces.tracesOf(runId))) ?? [];
  const places = new CommandPlaces((await ask(({ traces }) => traces.listUnnamed())) ?? []);
  for (const traceId of await findRuns(named, files, recent, tracesOf)) {
    const run = await readRun(traceId, files, reader);
    const commands = await readMeasures(reader, run);
    // A trace may hold commands of other runs, too.
    const isOwn = ({ invocation: one }: CommandMeasures) => String(places.runIdOf(traceId, one)) === named;
    for (const command of commands.some(isOwn) ? commands.filter(isOwn) : commands) {
      const earlier = await earlierLengthsMs(command.invocation, traceId, files, { recent, places });
      const comparison = compareWithEarlier(lengthMs(command), earlier);
      reports.push({ traceId, command, commandCount: run.invocations.length, comparison });
    }
  }
  // Of one log read twice, each damaged line was told twice: only whether there are any is said.
  if (damagedCount > 0) {
    context.stderr.write(
      'run-bridge: lines of the record log that are no records were left out; the disk damaged them\n',
    );
  }
  if (switches.has('json')) {
    const commands = reports.map(({ command, traceId, comparison }) => ({
      ...measuresDocument(command, traceId),
      comparison: comparison && {
        earlier_count: comparison.count,
        median_ms: comparison.medianMs,
        p95_ms: comparison.p95Ms,
        ratio: comparison.ratio,
        is_slow: comparison.isSlow,
      },
    }));
    context.stdout.write(`${JSON.stringify({ commands }, null, 2)}\n`);
  } else {
    context.stdout.write(reports.map(reportText).join('\n'));
  }
  return damagedCount > 0 ? EXIT.unreadable : EXIT.ok;
}

function lengthMs({ totals }: CommandMeasures): number {
  return Number(totals.lengthNano) / 1e6;
}

/** A reader that stops between two chunks. */
function stoppable(reader: RecordLogReader, stop: AbortSignal): RecordLogReader {
  return {
    lengthBytes: (traceId: TraceId) => reader.lengthBytes(traceId),
    async *read(traceId, range) {
      for await (const chunk of reader.read(traceId, range)) {
        stop.throwIfAborted();
        yield chunk;
      }
    },
  };
}
