import type { CliCommand } from '../cli/command.js';
import type { Environment } from '../config/environment.js';
import type { RecordLogReader } from '../log/record-log.js';
import type { RunSummary } from '../run/verdict.js';
import { RUN_WORDS } from '../run/words.js';
import type { EndedCommandReports, EndedEngineCommand } from './command.js';
import { REPORT_FORMATS } from './format-names.js';
import type { ReportOutput } from './formats.js';
import type { ReportHost } from './found-reports.js';

// The door of reports: no other folder imports anything else of this one. It loads nothing but names at run time.

export type { EndedEngineCommand } from './command.js';
export type { ReportOutput } from './formats.js';

/** `run-bridge report RUN` */
export function reportCommand(host: ReportHost): CliCommand {
  return {
    name: 'report',
    operands: '[RUN|FILE]',
    summary:
      'summarise a run: time by phase, slowest nodes, what it waited for, what failed and why; RUN is the number of a run, a trace or invocation id or how it begins, or a --run-id (default: the run that received records last), FILE a .jsonl or .parquet of the engine or OTLP as JSON lines',
    settings: ['data-dir', 'redaction'],
    values: { format: REPORT_FORMATS },
    flags: [
      [
        '--format <FORMAT>',
        'text, json (every node in every phase), markdown (for a comment or a summary), github (annotations, and the summary of the step), junit (tests as cases), html (one file) or perfetto (for ui.perfetto.dev); --redaction applies to the last five (default: text)',
      ],
      [
        '--against <RUN|FILE|last-good>',
        'say what changed, failed and got slower since another run, as text, markdown or github; last-good: the last run of its job before it that ended with success',
      ],
      ['--job <NAME>', 'with --against last-good: that of this job (default: the job of the run)'],
      ['--json', 'the same as --format json'],
      ['--schema', 'print the JSON Schema of --format json'],
    ],
    examples: [
      ['run-bridge report', 'the run that received records last'],
      ['run-bridge report 01a1fb8e', 'a run by the first characters of its trace or invocation id'],
      ['run-bridge report 1042', 'a run by its number, as pages and messages name it'],
      ['run-bridge report --format html > report.html', 'one file with the failures and a timeline'],
      ['run-bridge report logs/otel.jsonl --format markdown', 'a file of the engine, without a data folder'],
      ['run-bridge report 1042 --against last-good --format markdown', 'a comment for a pull request'],
      ["run-bridge report --json | jq '.commands[].totals'", 'for a program'],
    ],
    async run(invocation) {
      const { reportRun } = await import('./command.js');
      return reportRun(invocation, host);
    },
  };
}

/** `run-bridge diff RUN RUN` */
export function diffCommand(host: ReportHost): CliCommand {
  return {
    name: 'diff',
    operands: '<RUN|FILE> <RUN|FILE>',
    summary: 'compare two runs: what ended otherwise, what got slower or faster, what is new and what is gone',
    settings: ['data-dir', 'redaction'],
    values: { format: ['text', 'json'] },
    flags: [['--format <FORMAT>', 'text or json (default: text)']],
    examples: [
      ['run-bridge diff 1041 1042', 'the earlier one first; runs are named as for run-bridge report'],
      ["run-bridge diff 1041 1042 --format json | jq '.commands[].slower'", 'for a program'],
    ],
    async run(invocation) {
      const { diffRuns } = await import('./diff.js');
      return diffRuns(invocation, host);
    },
  };
}

/** `run-bridge top` */
export function topCommand(host: ReportHost): CliCommand {
  return {
    name: 'top',
    operands: '',
    summary: 'show the runs under way as they go on: nodes done, what runs, how long it may take; q or Ctrl+C quits',
    settings: ['data-dir'],
    flags: [['--once', 'say it once, and end']],
    examples: [
      ['run-bridge top', 'on a terminal; elsewhere it writes a line for each run every five seconds'],
      ['run-bridge top --once', 'for a program'],
    ],
    async run(invocation) {
      const { topRuns } = await import('./top.js');
      return topRuns(invocation, host);
    },
  };
}

/** `run-bridge runs` */
export function runsCommand(host: ReportHost): CliCommand {
  return {
    name: 'runs',
    operands: '',
    summary: 'list runs, the last to start first, also while a server is at work',
    settings: ['data-dir', 'database-url'],
    values: {
      format: ['text', 'json'],
      status: Object.values(RUN_WORDS),
    },
    flags: [
      ['--job <NAME>', 'those of this job'],
      ['--environment <NAME>', 'those of this environment'],
      ['--project <NAME>', 'those of this project'],
      ['--status <LIST>', `${Object.values(RUN_WORDS).join(', ')}; several with commas`],
      [
        '--text <TEXT>',
        'those with this in the name of the job, environment, project or run, in the git branch or in an error',
      ],
      ['--since <TIME>', 'those that came since then: 24h, 7d, or a date such as 2026-11-20'],
      ['--limit <COUNT>', 'at most so many, up to 1,000 (default: 20)'],
      ['--account <ID>', 'those of this account (default: the first)'],
      ['--format <FORMAT>', 'text or json, as the API has them (default: text)'],
    ],
    examples: [
      ['run-bridge runs', 'the last 20'],
      ['run-bridge runs --job nightly --status failed --since 7d', 'what failed in a week'],
      ["run-bridge runs --text 'does not exist'", 'what failed with such an error'],
      ["run-bridge runs --format json | jq '.runs[0].id'", 'for a program'],
    ],
    async run(invocation) {
      const { listRuns } = await import('./list-runs.js');
      return listRuns(invocation, host);
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

/** Whether a CI system shows a summary of the step that can be added to: GitHub's, or that of Azure Pipelines. */
export function hasStepSummary(environment: Environment): boolean {
  const { GITHUB_STEP_SUMMARY: file, TF_BUILD: azure, AGENT_TEMPDIRECTORY: folder } = environment;
  const isSet = (value: string | undefined) => value !== undefined && value !== '';
  return isSet(file) || (isSet(azure) && isSet(folder));
}

/** Reads the formats and files of `exec --report`. @throws CliError */
export async function reportOutputs(list: string): Promise<readonly ReportOutput[]> {
  const { parseReportOutputs } = await import('./formats.js');
  return parseReportOutputs(list);
}

/** Says how each engine command of a command ended, and why. @throws what keeps the logs from being read */
export async function endedEngineCommands(
  of: Omit<EndedCommandReports, 'outputs' | 'isSummaryWanted'>,
): Promise<readonly EndedEngineCommand[]> {
  const { endedCommands } = await import('./command.js');
  return endedCommands(of);
}

/** Writes reports of a command's runs when it has ended, and says how each ended. @throws what keeps them from being written */
export async function commandReports(of: EndedCommandReports): Promise<readonly EndedEngineCommand[]> {
  const { writeCommandReports } = await import('./command.js');
  return writeCommandReports(of);
}
