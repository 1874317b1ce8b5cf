import wrapAnsi from 'wrap-ansi';
import type { SinceTexts } from '../api/failing-since.js';
import {
  ageText,
  alignedRows,
  cleanLine,
  cleanText,
  counted,
  lengthText,
  startOf,
  withoutCommands,
} from '../core/text.js';
import { invocationIdOf } from '../record/telemetry-record.js';
import { type CommandComparison, contentionText, type NodePair, shareMs } from '../run/measures/compare-commands.js';
import type { PathLink } from '../run/measures/critical-path.js';
import type { NodeMeasure } from '../run/measures/node-measure.js';
import { longestParts, PATH_WORDS, paceOf, paceWords, percentText } from '../run/measures/pace.js';
import type { CommandMeasures, Comparison } from '../run/measures/run-totals.js';
import { shareOf, slowestNodes } from '../run/measures/time-split.js';
import { readableLines, retryCommand, troubleLocation, withLoneMessage } from '../run/measures/troubles.js';
import { commandLengthMs, hasOwnWord, type InvocationSummary, type NodeVerdict } from '../run/verdict.js';
import { COMMAND_WORDS, countsText, nodeWord, phaseWords } from '../run/words.js';
import type { CommandReport, ReportSetting } from './content.js';

const MAX_SLOWEST = 10;
/** Steps of the critical path that are shown: the longest ones with their waits. */
const MAX_STEPS = 20;

/** The reports as text for people: no wider than the terminal that shows it. */
export function textReport(reports: readonly CommandReport[], setting: ReportSetting): string {
  return reports.map((report) => reportText(report, setting)).join('\n');
}

/** A command's report as text for people. Control characters of messages do not reach the terminal. */
function reportText(report: CommandReport, setting: ReportSetting): string {
  const { traceId, command, commandCount, comparison, since, against } = report;
  const { invocation } = command;
  const { columns } = setting;
  const lines = [
    `run ${invocationIdOf(traceId)}${locationText(command, commandCount)}${stepText(command)}`,
    ...headLines(command),
    ...(invocation.statusMessage === null ? [] : [`reason: ${invocation.statusMessage}`]),
    ...(since?.run == null ? [] : [`since: ${since.run}`]),
    ...(invocation.rawCommand === null ? [] : [`command: ${invocation.rawCommand}`]),
    ...comparisonLines(comparison),
    ...(against === undefined ? [] : ['', ...differenceLines(against)]),
    ...problemLines(command, since),
    ...timeLines(command, columns),
    ...pathLines(command, columns),
    ...slowestLines(command, columns),
    ...phaseLines(command, columns),
    ...againLines(command),
  ];
  return lines.map((line) => `${shownLine(line, setting)}\n`).join('');
}

/** What to run now: what failed, else all of what did not end well. */
function againLines(command: CommandMeasures): readonly string[] {
  const { verdict, rawCommand } = command.invocation;
  if (verdict === 'success' || verdict === null) return [];
  const again = retryCommand(command) ?? rawCommand;
  return again === null ? [] : ['', `run again: ${again}`];
}

/** Of a longer line a terminal shows the beginning, in characters. */
const MAX_WRAPPED = 20_000;
/** How far the further lines of one that is too wide stand to the right of its first. */
const HANGING = 4;

/** A line, which may hold line breaks, as a terminal or a CI system may be given it. */
export function shownLine(line: string, { columns, hasColor }: ReportSetting): string {
  const clean = cleanText(line);
  const color = hasColor ? colorOf(clean) : undefined;
  const lines = clean.split('\n').map((part) => (columns === null ? part : wrapped(part, columns)));
  // A part that is wrapped may begin as a command does.
  const shown = withoutCommands(lines.join('\n'));
  return color === undefined ? shown : `\u001b[${color}m${shown}\u001b[0m`;
}

function wrapped(line: string, columns: number): string {
  if (line.length <= columns && /^[\x20-\x7e]*$/.test(line)) return line;
  const lead = /^ */.exec(line)?.[0].length ?? 0;
  const indent = lead + HANGING < columns / 2 ? lead + HANGING : 0;
  const [first = '', ...more] = wrapAnsi(line.slice(lead, MAX_WRAPPED), columns - indent, { hard: true }).split('\n');
  return [`${' '.repeat(indent === 0 ? 0 : lead)}${first}`, ...more.map((part) => `${' '.repeat(indent)}${part}`)].join(
    '\n',
  );
}

const BOLD = '1';
const RED = '1;31';
const YELLOW = '1;33';
const GREEN = '1;32';
const PROBLEM_COLORS: ReadonlyMap<string, string> = new Map([
  ['failed with an error:', RED],
  ['hooks that did not succeed:', RED],
  ['failed tests:', RED],
  ['other errors:', RED],
  ['stale sources:', YELLOW],
  ['tests with a warning:', YELLOW],
]);
/** What is said in place of how a command ended that goes on. */
const NO_END = 'no end seen yet';
/** The first line of a command: how it ended. */
const ENDED = new RegExp(`^\\S+: (${[...Object.values(COMMAND_WORDS), NO_END].join('|')}) after \\d[\\d.a-z ]*$`);

/** The colour of a title or of the command's end; `undefined` for other lines. */
function colorOf(line: string): string | undefined {
  const verdict = ENDED.exec(line)?.[1];
  if (verdict !== undefined)
    return verdict === COMMAND_WORDS.success ? GREEN : verdict === COMMAND_WORDS.error ? RED : YELLOW;
  return /^\S[^\n]*:$/.test(line) ? (PROBLEM_COLORS.get(line) ?? BOLD) : undefined;
}

function locationText({ invocation }: CommandMeasures, commandCount: number): string {
  return commandCount > 1 ? `, command ${invocation.index} of ${commandCount}` : '';
}

function stepText({ invocation }: CommandMeasures): string {
  const { step } = invocation;
  if (step === null) return '';
  const name = step.runKey === null ? '' : ` (${JSON.stringify(step.runKey)})`;
  return `, step ${step.stepIndex} of run ${step.runId}${name}, job ${step.job}`;
}

/** Widest bar in a table, in characters, and the narrowest terminal that has bars. */
const MAX_BAR = 30;
const MIN_COLUMNS_OF_BARS = 80;

/** Where the time went, what runs are compared by, and the engine's totals over all threads. */
function timeLines(command: CommandMeasures, columns: number | null): readonly string[] {
  const { invocation, totals, timeParts, split, omittedNodeCount } = command;
  const { lengthNano, durationMs, idleTimeMs, warehouseTimeNano, queryCount } = totals;
  const hasBars = columns === null || columns >= MIN_COLUMNS_OF_BARS;
  const barOf = (nano: bigint) => '█'.repeat(Math.round((Number(nano) / Math.max(1, Number(lengthNano))) * MAX_BAR));
  const parts = longestParts(timeParts);
  const rows = table(
    parts.map(([part, words]) => [words, lengthText(ms(timeParts[part])), percentText(timeParts[part], lengthNano)]),
    columns,
  );
  const queries = counted(queryCount, 'query', 'queries');
  return [
    '',
    `where the ${lengthText(commandLengthMs(invocation))} went:`,
    ...rows.map((row, at) => `${row}  ${hasBars ? barOf(timeParts[parts[at]?.[0] ?? 'restNano']) : ''}`.trimEnd()),
    ...paceWords(paceOf(command)).map(([name, value]) => `  ${name}: ${value}`),
    `  queries ran for ${percentText(split.warehouseNano, lengthNano)} of it: ${queries}, ${totals.rows} rows`,
    `  the engine's sums over all threads: duration_ms ${lengthText(durationMs)}, idle_time_ms ${lengthText(idleTimeMs)}, warehouse ${lengthText(ms(warehouseTimeNano))}`,
    ...(omittedNodeCount > 0 ? [`not measured: ${omittedNodeCount} further nodes`] : []),
  ];
}

function comparisonLines(comparison: Comparison | null): readonly string[] {
  if (comparison === null) return [];
  const { count, medianMs, p95Ms, ratio, isSlow } = comparison;
  const times = ratio === null ? '' : `, ${ratio.toFixed(2)} times the median`;
  const slow = isSlow ? '; slower than 95 of 100' : '';
  const those = counted(count, 'earlier success', 'earlier successes');
  return [`beside ${those}: median ${lengthText(medianMs)}, p95 ${lengthText(p95Ms)}${times}${slow}`];
}

function phaseLines({ phases, totals: { lengthNano } }: CommandMeasures, columns: number | null): readonly string[] {
  if (phases.length === 0) return [];
  const rows = phases.map((phase) => [
    phaseWords(phase.phase),
    lengthText(ms(phase.shareNano)),
    percentText(phase.shareNano, lengthNano),
    phase.endTimeUnixNano === null ? 'no end' : lengthText(ms(phase.spanTimeNano)),
    ...(phase.nodeCount === 0
      ? ['', '', '']
      : [String(phase.nodeCount), lengthText(ms(phase.nodeTimeNano)), lengthText(ms(phase.warehouseTimeNano))]),
  ]);
  const title = 'phases (share: while no node was worked on; the other times overlap, and are sums over all threads):';
  return [
    '',
    title,
    ...table([['', 'share', 'of the run', 'span', 'nodes', 'their spans', 'warehouse'], ...rows], columns),
  ];
}

function slowestLines({ nodes, totals: { lengthNano } }: CommandMeasures, columns: number | null): readonly string[] {
  const slowest = slowestNodes(nodes, MAX_SLOWEST);
  if (slowest.length === 0) return [];
  const rows = slowest.map((node) => [
    node.uniqueId,
    lengthText(ms(shareOf(node.share))),
    percentText(shareOf(node.share), lengthNano),
    lengthText(ms(node.warehouseTimeNano)),
    node.rows === null ? '' : String(node.rows),
    node.durationMs === null ? '' : lengthText(node.durationMs),
    node.idleTimeMs === null ? '' : lengthText(node.idleTimeMs),
  ]);
  const title = 'slowest nodes (share: about how much shorter the run would be without them):';
  return [
    '',
    title,
    ...table([['', 'share', 'of the run', 'warehouse', 'rows', 'duration_ms', 'idle_time_ms'], ...rows], columns),
  ];
}

function pathLines({ invocation, criticalPath, totals }: CommandMeasures, columns: number | null): readonly string[] {
  const { links, tailNano, follows } = criticalPath;
  const { lengthNano } = totals;
  if (links.length === 0) return [];
  const longest = new Set([...links].sort((a, b) => (weight(b) > weight(a) ? 1 : -1)).slice(0, MAX_STEPS));
  const shown = links.filter((link) => longest.has(link));
  const rows = shown.map((link) => [
    `${phaseWords(link.step.phase)} ${link.step.uniqueId ?? ''}`.trim() +
      (link.step.hasEnd ? '' : ` (${nodeWord('unfinished')})`),
    lengthText(ms(link.waitNano)),
    lengthText(ms(link.timeNano)),
    percentText(weight(link), lengthNano),
    link.basis === 'reported' ? 'reported' : '',
  ]);
  const restCount = links.length - shown.length;
  const restNano = links.filter((link) => !longest.has(link)).reduce((sum, link) => sum + weight(link), 0n);
  return [
    '',
    `critical path of ${lengthText(commandLengthMs(invocation))} (${PATH_WORDS[follows]}; "reported": by the engine):`,
    ...table(
      [
        ['', 'wait', 'time', 'of the run', ''],
        ...rows,
        ['end of the command', lengthText(ms(tailNano)), '', percentText(tailNano, lengthNano), ''],
      ],
      columns,
    ),
    ...(restCount > 0 ? [`  and ${restCount} shorter steps, ${lengthText(ms(restNano))} together`] : []),
  ];
}

function weight({ waitNano, timeNano }: PathLink): bigint {
  return waitNano + timeNano;
}

function ms(nano: bigint): number {
  return Number(nano) / 1e6;
}

/** Longest name in a table where no terminal limits it, and shortest limit, in characters. */
const MAX_NAME = 300;
const MIN_NAME = 16;

/** The first column to the left, its names cut in the middle where a row would be too wide; the others to the right. */
function table(rows: readonly (readonly string[])[], columns: number | null): readonly string[] {
  const [{ length: count } = []] = rows;
  const widths = Array.from({ length: count ?? 0 }, (_, column) =>
    rows.reduce((most, row) => Math.max(most, row[column]?.length ?? 0), 0),
  );
  const others = widths.slice(1).reduce((sum, width) => sum + width + 2, 0);
  const room = columns === null ? MAX_NAME : Math.max(MIN_NAME, columns - 2 - others);
  const fitting = rows.map(([name = '', ...cells]) => [middleCut(name, room), ...cells]);
  return alignedRows(fitting, { isRight: (column) => column > 0 }).map((row) => `  ${row}`);
}

function middleCut(name: string, maxLength: number): string {
  if (name.length <= maxLength) return name;
  const end = Math.floor((maxLength - 1) / 2);
  return `${name.slice(0, maxLength - 1 - end)}…${name.slice(name.length - end)}`;
}

/** Nodes that are listed of each kind; more are counted. */
const MAX_LISTED = 20;
/** Of skipped ones: reasons that are listed, and nodes of each. */
const MAX_REASONS = 8;
const MAX_SKIPPED = 3;
/** How a command ended, and after which time: `build: failed after 4.9 s`. */
export function endedLine(invocation: InvocationSummary): string {
  const { verdict, command } = invocation;
  const ended = verdict === null ? NO_END : COMMAND_WORDS[verdict];
  return `${command ?? 'a command'}: ${ended} after ${lengthText(commandLengthMs(invocation))}`;
}

/** How a command ended, and the counts of its nodes. */
export function headLines({ invocation, totals }: CommandMeasures): readonly string[] {
  const { nodeCounts, noOpCount, hookCounts } = totals;
  const nodes = countsText(nodeCounts, noOpCount);
  const hooks = countsText(hookCounts);
  return [
    endedLine(invocation),
    `nodes: ${nodes === '' ? 'none' : nodes}`,
    ...(hooks === '' ? [] : [`hooks: ${hooks}`]),
  ];
}

/** What did not go well, and why. */
export function problemLines(command: CommandMeasures, since?: SinceTexts): readonly string[] {
  const { hooks } = command;
  const { nodes, messages } = withLoneMessage(command);
  const of = (verdict: NodeVerdict) => nodes.filter((node) => node.verdict === verdict && node.freshness === null);
  const stale = nodes.filter(({ verdict, freshness }) => freshness !== null && verdict !== 'success');
  const skipped = of('skipped').filter(({ skipReason }) => skipReason !== 'noop');
  const badHooks = hooks.filter(({ verdict }) => verdict !== 'success');
  return [
    ...section('failed with an error', of('error'), ({ message }) => message ?? 'no message came with it', since),
    ...list(
      'hooks that did not succeed',
      badHooks.map(({ uniqueId, verdict, message }) => `${uniqueId}: ${indent(message ?? nodeWord(verdict))}`),
    ),
    ...section('failed tests', of('failed'), testDetail, since),
    ...section('tests with a warning', of('warned'), testDetail),
    ...section('stale sources', stale, staleDetail),
    ...list(nodeWord('canceled'), of('canceled').map(idOf)),
    ...list(nodeWord('unfinished'), of('unfinished').map(idOf)),
    ...list(nodeWord('skipped'), skippedItems(skipped)),
    ...list(
      'other outcomes, in the words of the engine',
      nodes.filter(hasOwnWord).map(({ uniqueId, verdict }) => `${uniqueId}: ${verdict}`),
    ),
    ...list('other errors', messages.map(indent)),
  ];
}

/** Nodes with the place in the project where each is mended. */
function section(
  title: string,
  nodes: readonly NodeMeasure[],
  detail: (node: NodeMeasure) => string,
  since?: SinceTexts,
): readonly string[] {
  const lines = nodes.map((node) => {
    const known = since?.nodes.get(node.uniqueId);
    const place = troubleLocation({ path: node.relativePath, line: node.definedAtLine });
    return `${node.uniqueId}${place === null ? '' : ` (${place})`}: ${indent(`${detail(node).trimEnd()}${known === undefined ? '' : `\n${known}`}`)}`;
  });
  return list(title, lines);
}

const idOf = ({ uniqueId }: NodeMeasure) => uniqueId;

/** Nodes that were skipped for one reason stand below it. */
function skippedItems(nodes: readonly NodeMeasure[]): readonly string[] {
  const byReason = new Map<string, string[]>();
  for (const node of nodes) {
    const reason = skipReasonOf(node);
    const known = byReason.get(reason);
    if (known === undefined) byReason.set(reason, [node.uniqueId]);
    else known.push(node.uniqueId);
  }
  const shown = [...byReason].sort(([, a], [, b]) => b.length - a.length);
  const items = shown.slice(0, MAX_REASONS).map(([reason, ids]) => {
    const rest = ids.length - MAX_SKIPPED;
    return indent([`${reason}:`, ...ids.slice(0, MAX_SKIPPED), ...(rest > 0 ? [`and ${rest} more`] : [])].join('\n'));
  });
  const others = shown.slice(MAX_REASONS);
  const count = others.reduce((sum, [, ids]) => sum + ids.length, 0);
  return others.length === 0 ? items : [...items, `and ${count} more, for ${counted(others.length, 'other reason')}`];
}

function list(title: string, items: readonly string[]): readonly string[] {
  if (items.length === 0) return [];
  const lines = items.slice(0, MAX_LISTED).map((item) => `  ${item}`);
  const rest = items.length - lines.length;
  return ['', `${title}:`, ...lines, ...(rest > 0 ? [`  and ${rest} more`] : [])];
}

function staleDetail({ verdict, freshness }: NodeMeasure): string {
  const age = freshness?.ageSeconds ?? null;
  const limit = verdict === 'failed' ? 'past the limit for an error' : 'past the limit for a warning';
  return age === null ? limit : `last updated ${ageText(age)} ago, ${limit}`;
}

/** A test whose query failed counts as one with a failing row: its message contains the reason. */
function testDetail({ failingRows, diffTable, message }: NodeMeasure): string {
  const messageText = message === null ? '' : `\n${message}`;
  if (diffTable !== null) return `expected and actual rows differ\n${diffTable}${messageText}`;
  if (failingRows === null) return `no row count came with it${messageText}`;
  return `${counted(failingRows, 'failing row')}${messageText}`;
}

function skipReasonOf({ skipReason, skipUpstream }: NodeMeasure): string {
  if (skipUpstream !== null) return `because of ${skipUpstream}`;
  switch (skipReason) {
    case 'cached':
      return 'nothing had changed: an earlier result is used';
    case 'phase_disabled':
      return 'its phase is switched off';
    default:
      return skipReason ?? 'no reason came with it';
  }
}

/** Further lines of a text stand below its first. */
function indent(text: string): string {
  return text.trimEnd().replaceAll('\n', '\n      ');
}

/** Longest cause behind a node that ended otherwise, in characters. */
const MAX_CAUSE = 300;

/** What is different between two commands, node by node. */
export function differenceLines({
  before,
  after,
  longerMs,
  leastMs,
  contention,
  ...nodes
}: CommandComparison): readonly string[] {
  const sections = [
    ...differences('ended otherwise', nodes.changed, changeLine),
    ...differences('slower', nodes.slower, timeLine),
    ...differences('faster', nodes.faster, timeLine),
    ...differences('new', nodes.added, nodeLine),
    ...differences('gone', nodes.gone, nodeLine),
  ];
  const atATime = contentionText(contention);
  return [
    `before: ${headLines(before)[0]}${placeOf(before)}`,
    `after:  ${headLines(after)[0]}${placeOf(after)}, ${signed(longerMs)}`,
    ...(atATime === null ? [] : [atATime]),
    ...(sections.length === 0
      ? [`every node ended as before, and none took ${lengthText(leastMs)} more or less of the run's time`]
      : sections),
  ];
}

/** Which run a command is of, and when it started: `, run 1042, job nightly, 2026-11-20 02:00 UTC`. */
function placeOf({ invocation: { step, startTimeUnixNano } }: CommandMeasures): string {
  const at = new Date(Number(startTimeUnixNano / 1_000_000n)).toISOString().slice(0, 16).replace('T', ' ');
  return `, ${step === null ? '' : `run ${step.runId}, job ${step.job}, `}${at} UTC`;
}

function differences<Item>(title: string, items: readonly Item[], lineOf: (item: Item) => string): readonly string[] {
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
export function signed(longerMs: number): string {
  return `${lengthText(Math.abs(longerMs))} ${longerMs < 0 ? 'shorter' : 'longer'}`;
}
