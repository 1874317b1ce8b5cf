import { EXIT, type ExitCode, type Invocation } from '../cli/command.js';
import { readConfiguration } from '../cli/command-configuration.js';
import { harmlessJson } from '../core/text.js';
import { compareRuns, type NodePair, type RunComparison, shareMs } from '../run/measures/compare-commands.js';
import type { NodeMeasure } from '../run/measures/node-measure.js';
import type { CommandMeasures } from '../run/measures/run-totals.js';
import { settingOf } from './command.js';
import type { CommandReport, ReportSetting } from './content.js';
import { findReports, type ReportHost } from './found-reports.js';
import { isJsonFormat } from './list-runs.js';
import { differenceLines, headLines, shownLine } from './text.js';

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

function textDiff({ pairs, added, gone }: RunComparison, setting: ReportSetting): string {
  const only = (commands: readonly CommandMeasures[], where: string) =>
    commands.map((command) => `${headLines(command)[0]}, in the ${where} run alone`);
  const blocks = [...pairs.map(differenceLines), only(gone, 'earlier'), only(added, 'later')].filter(
    ({ length }) => length > 0,
  );
  const lines = blocks.flatMap((block, index) => (index === 0 ? block : ['', ...block]));
  return lines.map((line) => `${shownLine(line, setting)}\n`).join('');
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
