import { alignedRows, counted } from '../core/text.js';
import { invocationIdOf, type TraceId } from '../record/telemetry-record.js';
import { ageText, measuresDocument } from '../run/measures/measures-document.js';
import type { NodeMeasure } from '../run/measures/node-measure.js';
import { type CommandMeasures, type Comparison, slowestNodes } from '../run/measures/run-totals.js';
import { type PathLink, shareOf } from '../run/measures/time-split.js';
import { hasOwnWord, type NodeVerdict } from '../run/verdict.js';

const MAX_SLOWEST = 10;
/** Steps of the critical path that are shown: the longest ones with their waits. */
const MAX_STEPS = 20;

/** The report of one command. */
export interface CommandReport {
  readonly traceId: TraceId;
  readonly command: CommandMeasures;
  /** Commands that share the trace. */
  readonly commandCount: number;
  readonly comparison: Comparison | null;
}

/** Formats of the command, by the switch that selects each; without one it prints text. */
export const REPORT_FORMATS: Readonly<Record<string, (reports: readonly CommandReport[]) => string>> = {
  json: jsonReport,
};

/** The reports as text for people. */
export function textReport(reports: readonly CommandReport[]): string {
  return reports.map(reportText).join('\n');
}

function jsonReport(reports: readonly CommandReport[]): string {
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
  return `${JSON.stringify({ commands }, null, 2)}\n`;
}

/** A command's report as text for people. Control characters of messages do not reach the terminal. */
function reportText({ traceId, command, commandCount, comparison }: CommandReport): string {
  const { invocation } = command;
  const lines = [
    `run ${invocationIdOf(traceId)}${placeText(command, commandCount)}${stepText(command)}`,
    ...headLines(command),
    ...(invocation.statusMessage === null ? [] : [`reason: ${invocation.statusMessage}`]),
    ...(invocation.rawCommand === null ? [] : [`command: ${invocation.rawCommand}`]),
    ...comparisonLines(comparison),
    ...splitLines(command),
    ...slowestLines(command),
    ...phaseLines(command),
    ...pathLines(command),
    ...problemLines(command),
  ];
  return lines.map((line) => `${line.replaceAll('\r\n', '\n').replaceAll(/(?![\n\t])\p{Cc}/gu, '\ufffd')}\n`).join('');
}

function placeText({ invocation }: CommandMeasures, commandCount: number): string {
  return commandCount > 1 ? `, command ${invocation.index} of ${commandCount}` : '';
}

function stepText({ invocation }: CommandMeasures): string {
  const { step } = invocation;
  if (step === null) return '';
  const name = step.runKey === null ? '' : ` (${JSON.stringify(step.runKey)})`;
  return `, step ${step.stepIndex} of run ${step.runId}${name}, job ${step.job}`;
}

/** How the duration is divided: first the shares that add up to it, then the engine's totals over all threads. */
function splitLines({ totals, split, omittedNodeCount }: CommandMeasures): readonly string[] {
  const { lengthNano, durationMs, idleTimeMs, warehouseTimeNano, queryCount, rows } = totals;
  const shares = [
    ['nodes', split.nodesNano],
    ['nodes that were not selected', split.unselectedNodesNano],
    ['hooks', split.hooksNano],
    ['queries of no node', split.otherQueriesNano],
    ['phases in which no node was worked on', split.phasesNano],
    ['the rest', split.restNano],
  ] as const;
  const queries = counted(queryCount, 'query', 'queries');
  const shown = shares.filter(([, nano]) => nano > 0n);
  return [
    '',
    `where the ${length(ms(lengthNano))} went:`,
    ...table(shown.map(([name, nano]) => [name, length(ms(nano)), percent(nano, lengthNano)])),
    '  (each moment is shared by the queries that ran in it; else by the nodes that were worked on; else by the phases)',
    `  queries ran for ${percent(split.warehouseNano, lengthNano)} of it: ${queries}, ${rows} rows`,
    `  the engine's sums over all threads: duration_ms ${length(durationMs)}, idle_time_ms ${length(idleTimeMs)}, queries ${length(ms(warehouseTimeNano))}`,
    ...(omittedNodeCount > 0 ? [`not measured: ${omittedNodeCount} further nodes`] : []),
  ];
}

/** `12 %`, `0.3 %`. */
function percent(nano: bigint, lengthNano: bigint): string {
  const share = lengthNano === 0n ? 0 : (Number(nano) / Number(lengthNano)) * 100;
  return `${share >= 9.95 || share === 0 ? share.toFixed(0) : share.toFixed(1)} %`;
}

function comparisonLines(comparison: Comparison | null): readonly string[] {
  if (comparison === null) return [];
  const { count, medianMs, p95Ms, ratio, isSlow } = comparison;
  const times = ratio === null ? '' : `, ${ratio.toFixed(2)} times the median`;
  const slow = isSlow ? '; slower than 95 of 100' : '';
  const those = counted(count, 'earlier success', 'earlier successes');
  return [`beside ${those}: median ${length(medianMs)}, p95 ${length(p95Ms)}${times}${slow}`];
}

function phaseLines({ phases, totals: { lengthNano } }: CommandMeasures): readonly string[] {
  if (phases.length === 0) return [];
  const rows = phases.map((phase) => [
    phase.phase,
    length(ms(phase.shareNano)),
    percent(phase.shareNano, lengthNano),
    phase.endTimeUnixNano === null ? 'no end' : length(ms(phase.spanTimeNano)),
    ...(phase.nodeCount === 0
      ? ['', '', '']
      : [String(phase.nodeCount), length(ms(phase.nodeTimeNano)), length(ms(phase.warehouseTimeNano))]),
  ]);
  const title = 'phases (share: while no node was worked on; the other times overlap, and are sums over all threads):';
  return ['', title, ...table([['', 'share', 'of the run', 'span', 'nodes', 'their spans', 'queries'], ...rows])];
}

function slowestLines({ nodes, totals: { lengthNano } }: CommandMeasures): readonly string[] {
  const slowest = slowestNodes(nodes, MAX_SLOWEST);
  if (slowest.length === 0) return [];
  const rows = slowest.map((node) => [
    node.uniqueId,
    length(ms(shareOf(node.share))),
    percent(shareOf(node.share), lengthNano),
    length(ms(node.warehouseTimeNano)),
    node.rows === null ? '' : String(node.rows),
    node.durationMs === null ? '' : length(node.durationMs),
    node.idleTimeMs === null ? '' : length(node.idleTimeMs),
  ]);
  const title = 'slowest nodes (share: about how much shorter the run would be without them):';
  return [
    '',
    title,
    ...table([['', 'share', 'of the run', 'queries', 'rows', 'duration_ms', 'idle_time_ms'], ...rows]),
  ];
}

function pathLines({ criticalPath, totals }: CommandMeasures): readonly string[] {
  const { links, tailNano } = criticalPath;
  if (links.length === 0) return [];
  const longest = new Set([...links].sort((a, b) => (weight(b) > weight(a) ? 1 : -1)).slice(0, MAX_STEPS));
  const shown = links.filter((link) => longest.has(link));
  const rows = shown.map(({ step, basis, waitNano, timeNano }) => [
    `${step.phase} ${step.uniqueId ?? ''}`.trim() + (step.hasEnd ? '' : ' (not finished)'),
    length(ms(waitNano)),
    length(ms(timeNano)),
    basis === 'told' ? 'told' : '',
  ]);
  const restCount = links.length - shown.length;
  const restNano = links.filter((link) => !longest.has(link)).reduce((sum, link) => sum + weight(link), 0n);
  return [
    '',
    `critical path of ${length(ms(totals.lengthNano))} (what ended last before each began; "told": by the engine):`,
    ...table([['', 'wait', 'time', ''], ...rows, ['end of the command', length(ms(tailNano)), '', '']]),
    ...(restCount > 0 ? [`  and ${restCount} shorter steps, ${length(ms(restNano))} together`] : []),
  ];
}

function weight({ waitNano, timeNano }: PathLink): bigint {
  return waitNano + timeNano;
}

function ms(nano: bigint): number {
  return Number(nano) / 1e6;
}

/** Short lengths in milliseconds: `1.059 s`, `59 ms`, `0.3 ms`. */
function length(milliseconds: number): string {
  if (milliseconds >= 999.5) return `${(milliseconds / 1_000).toFixed(3)} s`;
  return `${milliseconds.toFixed(milliseconds >= 9.95 || milliseconds === 0 ? 0 : 1)} ms`;
}

/** The first column to the left, the others to the right. */
function table(rows: readonly (readonly string[])[]): readonly string[] {
  return alignedRows(rows, { isRight: (column) => column > 0 }).map((row) => `  ${row}`);
}

/** Nodes that are listed of each kind; more are counted. */
const MAX_LISTED = 20;
/** How a command ended, and the counts of its nodes. */
export function headLines({ invocation, totals }: CommandMeasures): readonly string[] {
  const seconds = Number(totals.lengthNano / 1_000_000n) / 1_000;
  const { nodeCounts, noOpCount, hookCounts } = totals;
  const nodes = Object.entries(nodeCounts).flatMap(([verdict, count]) =>
    verdict === 'skipped'
      ? ([
          [verdict, count - noOpCount],
          ['no-op', noOpCount],
        ] as const)
      : ([[verdict, count]] as const),
  );
  return [
    `${invocation.command ?? 'a command'}: ${invocation.verdict ?? 'no end seen yet'} after ${seconds.toFixed(1)} s`,
    `nodes: ${countLine(nodes) ?? 'none'}`,
    ...[countLine(Object.entries(hookCounts))].flatMap((hooks) => (hooks === undefined ? [] : [`hooks: ${hooks}`])),
  ];
}

/** `13 success, 1 warned`; `undefined` where there is nothing to count. */
function countLine(counts: readonly (readonly [string, number])[]): string | undefined {
  const told = counts.filter(([, count]) => count > 0).map(([verdict, count]) => `${count} ${verdict}`);
  return told.length === 0 ? undefined : told.join(', ');
}

/** What did not go well, and why. */
export function problemLines({ nodes, hooks, messages }: CommandMeasures): readonly string[] {
  const of = (verdict: NodeVerdict) => nodes.filter((node) => node.verdict === verdict && node.freshness === null);
  const stale = nodes.filter(({ verdict, freshness }) => freshness !== null && verdict !== 'success');
  const skipped = of('skipped').filter(({ skipReason }) => skipReason !== 'noop');
  const badHooks = hooks.filter(({ verdict }) => verdict !== 'success');
  return [
    ...section('failed with an error', of('error'), ({ message }) => message ?? 'no message came with it'),
    ...list(
      'hooks that did not succeed',
      badHooks.map(({ uniqueId, verdict }) => `${uniqueId}: ${verdict}`),
    ),
    ...section('failed tests', of('failed'), testDetail),
    ...section('tests with a warning', of('warned'), testDetail),
    ...section('stale sources', stale, staleDetail),
    ...section('canceled', of('canceled')),
    ...section('not finished', of('unfinished')),
    ...section('skipped', skipped, skipDetail),
    ...section('other outcomes, in the words of the engine', nodes.filter(hasOwnWord), ({ verdict }) => verdict),
    ...list('other errors', messages.map(indent)),
  ];
}

function section(
  title: string,
  nodes: readonly NodeMeasure[],
  detail?: (node: NodeMeasure) => string,
): readonly string[] {
  const lines = nodes.map((node) =>
    detail === undefined ? node.uniqueId : `${node.uniqueId}: ${indent(detail(node))}`,
  );
  return list(title, lines);
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
  const said = message === null ? '' : `\n${message}`;
  if (diffTable !== null) return `expected and actual rows differ\n${diffTable}${said}`;
  if (failingRows === null) return `no row count came with it${said}`;
  return `${counted(failingRows, 'failing row')}${said}`;
}

function skipDetail({ skipReason, skipUpstream }: NodeMeasure): string {
  if (skipUpstream !== null) return `${skipUpstream} stands before it, and did not go well`;
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
