import { EXIT, type ExitCode, type Invocation } from '../cli/command.js';
import { readConfiguration } from '../cli/command-configuration.js';
import { cleanLine, harmlessJson, lengthText, startOf } from '../core/text.js';
import {
  type CommandComparison,
  compareRuns,
  contentionText,
  type NodePair,
  type RunComparison,
  shareMs,
} from '../run/measures/compare-commands.js';
import type { NodeMeasure } from '../run/measures/node-measure.js';
import type { CommandMeasures } from '../run/measures/run-totals.js';
import { readableLines } from '../run/measures/troubles.js';
import { nodeWord } from '../run/words.js';
import { findReports, type ReportHost, settingOf } from './command.js';
import type { CommandReport, ReportSetting } from './content.js';
import { isJsonFormat } from './list-runs.js';
import { headLines, shownLine } from './text.js';

/** Runs `run-bridge diff`. @throws CliError, ConfigurationError */
export async function diffRuns(invocation: Invocation, host: ReportHost): Promise<ExitCode> {
  const { context, operands, flags } = invocation;
  const isJson = isJsonFormat(flags.format);
  const configuration = await readConfiguration(invocation);
  const deps = { configuration, host, context };
  const before = await findReports(operands[0], null, deps);
  const after = await findReports(operands[1], null, deps);
  const comparison = compareRuns(commandsOf(before.reports), commandsOf(after.reports));
  context.stdout.write(isJson ? jsonDiff(comparison) : textDiff(comparison, settingOf(context)));
  return before.isDamaged || after.isDamaged ? EXIT.unreadable : EXIT.ok;
}

function commandsOf(reports: readonly CommandReport[]): readonly CommandMeasures[] {
  return reports.map(({ command }) => command);
}

/** Nodes that are listed of each kind; more are counted. */
const MAX_LISTED = 20;
/** Longest cause behind a node, in characters. */
const MAX_CAUSE = 300;

function textDiff({ pairs, added, gone }: RunComparison, setting: ReportSetting): string {
  const only = (commands: readonly CommandMeasures[], where: string) =>
    commands.map((command) => `${headLines(command)[0]}, in the ${where} run alone`);
  const blocks = [...pairs.map(pairLines), only(gone, 'earlier'), only(added, 'later')].filter(
    ({ length }) => length > 0,
  );
  const lines = blocks.flatMap((block, index) => (index === 0 ? block : ['', ...block]));
  return lines.map((line) => `${shownLine(line, setting)}\n`).join('');
}

function pairLines({ before, after, longerMs, leastMs, contention, ...nodes }: CommandComparison): readonly string[] {
  const sections = [
    ...section('ended otherwise', nodes.changed, changeLine),
    ...section('slower', nodes.slower, timeLine),
    ...section('faster', nodes.faster, timeLine),
    ...section('new', nodes.added, nodeLine),
    ...section('gone', nodes.gone, nodeLine),
  ];
  const atATime = contentionText(contention);
  return [
    `before: ${headLines(before)[0]}${stepLabel(before)}`,
    `after:  ${headLines(after)[0]}${stepLabel(after)}, ${signed(longerMs)}`,
    ...(atATime === null ? [] : [atATime]),
    ...(sections.length === 0
      ? [`every node ended as before, and none took ${lengthText(leastMs)} more or less of the run's time`]
      : sections),
  ];
}

function stepLabel({ invocation: { step, startTimeUnixNano } }: CommandMeasures): string {
  const at = new Date(Number(startTimeUnixNano / 1_000_000n)).toISOString().slice(0, 16).replace('T', ' ');
  return `, ${step === null ? '' : `run ${step.runId}, job ${step.job}, `}${at} UTC`;
}

function section<Item>(title: string, items: readonly Item[], lineOf: (item: Item) => string): readonly string[] {
  if (items.length === 0) return [];
  const rest = items.length - MAX_LISTED;
  return [
    '',
    `${title} (${items.length}):`,
    ...items.slice(0, MAX_LISTED).map((item) => `  ${lineOf(item)}`),
    ...(rest > 0 ? [`  and ${rest} more`] : []),
  ];
}

function changeLine({ before, after }: NodePair): string {
  const [cause] = after.message === null ? [] : readableLines(after.message);
  const why = cause === undefined || after.verdict === 'success' ? '' : `: ${startOf(cleanLine(cause), MAX_CAUSE)}`;
  return `${after.uniqueId}: ${nodeWord(before.verdict)} before, ${nodeWord(after.verdict)} after${why}`;
}

function timeLine({ after, beforeMs, afterMs, longerMs }: NodePair): string {
  return `${after.uniqueId}: ${signed(longerMs)} (${lengthText(beforeMs)}, then ${lengthText(afterMs)})`;
}

function nodeLine(node: NodeMeasure): string {
  return `${node.uniqueId}: ${nodeWord(node.verdict)}, ${lengthText(shareMs(node))}`;
}

/** `4.1 s longer`, `312 ms shorter`. */
function signed(longerMs: number): string {
  return `${lengthText(Math.abs(longerMs))} ${longerMs < 0 ? 'shorter' : 'longer'}`;
}

/** Names in snake_case, lengths in milliseconds, as in the JSON of reports. */
function jsonDiff({ pairs, added, gone }: RunComparison): string {
  const document = {
    commands: pairs.map(({ before, after, longerMs, leastMs, contention, ...nodes }) => ({
      before: commandDocument(before),
      after: commandDocument(after),
      longer_ms: longerMs,
      least_ms: leastMs,
      nodes_at_a_time: contention,
      changed: nodes.changed.map(pairDocument),
      slower: nodes.slower.map(pairDocument),
      faster: nodes.faster.map(pairDocument),
      new: nodes.added.map(nodeDocument),
      gone: nodes.gone.map(nodeDocument),
    })),
    new_commands: added.map(commandDocument),
    gone_commands: gone.map(commandDocument),
  };
  return `${harmlessJson(JSON.stringify(document, null, 2))}\n`;
}

function commandDocument({ invocation, totals }: CommandMeasures) {
  return {
    run_id: invocation.step?.runId ?? null,
    command: invocation.command,
    verdict: invocation.verdict,
    start_time_unix_nano: String(invocation.startTimeUnixNano),
    length_ms: Number(totals.lengthNano) / 1e6,
    node_counts: totals.nodeCounts,
  };
}

function pairDocument({ before, after, longerMs }: NodePair) {
  return {
    unique_id: after.uniqueId,
    before: outcomeDocument(before),
    after: outcomeDocument(after),
    longer_ms: longerMs,
  };
}

function nodeDocument(node: NodeMeasure) {
  return { unique_id: node.uniqueId, ...outcomeDocument(node) };
}

function outcomeDocument(node: NodeMeasure) {
  const { verdict, durationMs, message } = node;
  return { verdict, share_ms: shareMs(node), duration_ms: durationMs, message };
}
