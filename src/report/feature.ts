import type { CliCommand } from '../cli/command-line.js';
import type { RecordLogReader } from '../log/record-log.js';
import type { RunSummary } from '../run/verdict.js';
import type { ReportHost } from './command.js';

// The door of reports: no other folder imports anything else of this one. It imports nothing at run time.

/** `run-bridge report RUN` */
export function reportCommand(host: ReportHost): CliCommand {
  return {
    name: 'report',
    operands: '[RUN]',
    summary:
      'summarise a run: time by phase, slowest nodes, what it waited for, what failed and why; RUN is the number of a run, a trace or invocation id or how it begins, or a --run-id (default: the run that received records last)',
    settings: ['data-dir'],
    flags: [['--json', 'print every node in every phase as JSON']],
    examples: [
      ['run-bridge report', 'the run that received records last'],
      ['run-bridge report 01a1fb8e', 'a run by the first characters of its trace or invocation id'],
      ['run-bridge report 1042', 'a run by its number, as pages and messages name it'],
      ["run-bridge report --json | jq '.commands[].totals'", 'for a program'],
    ],
    async run(invocation) {
      const { reportRun } = await import('./command.js');
      return reportRun(invocation, host);
    },
  };
}

/** Says in lines how the first command of a run ended, and what did not go well; `undefined` where it contains none. */
export async function shortReport(reader: RecordLogReader, run: RunSummary): Promise<readonly string[] | undefined> {
  const { readMeasures } = await import('../run/measures/read-measures.js');
  const { headLines, problemLines } = await import('./text.js');
  const [command] = await readMeasures(reader, run);
  return command && [...headLines(command), ...problemLines(command)];
}
