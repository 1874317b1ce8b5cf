import { counted } from '../../core/counted.js';
import { ageText } from '../../run/measures/age-text.js';
import type { CommandMeasures } from '../../run/measures/command-measures.js';
import type { NodeMeasure } from '../../run/measures/node-measure.js';
import { hasOwnWord, type NodeVerdict } from '../../run/run-summary.js';

/** Nodes that are listed of each kind; more are counted. */
const MAX_LISTED = 20;
/** How a command ended and how many of its nodes did: what a reader wants to know first. */
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

/** A test whose query failed counts as one with a failing row: its message says what was wrong. */
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
