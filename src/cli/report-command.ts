import type { CliCommand } from './command-line.js';

/** `run-bridge report RUN` */
export const reportCommand: CliCommand = {
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
    const { reportRun } = await import('./report/report-run.js');
    return reportRun(invocation);
  },
};
