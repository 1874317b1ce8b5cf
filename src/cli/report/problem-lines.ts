import type { CommandMeasures } from '../../run/measures/command-measures.js';
import type { NodeMeasure } from '../../run/measures/node-measure.js';
import type { NodeVerdict } from '../../run/run-summary.js';

/** Nodes that are listed of each kind; more are counted. */
const MAX_LISTED = 20;
const COUNT_ORDER: readonly NodeVerdict[] = [
  'success',
  'warned',
  'failed',
  'error',
  'canceled',
  'skipped',
  'unfinished',
];

/** How a command ended and how many of its nodes did: what a reader wants to know first. */
export function headLines({ invocation, totals }: CommandMeasures): readonly string[] {
  const seconds = Number(totals.lengthNano / 1_000_000n) / 1_000;
  const counts = COUNT_ORDER.filter((verdict) => totals.nodeCounts[verdict] > 0);
  const nodes = counts.map((verdict) => `${totals.nodeCounts[verdict]} ${verdict}`).join(', ');
  return [
    `${invocation.command ?? 'a command'}: ${invocation.verdict ?? 'no end seen yet'} after ${seconds.toFixed(1)} s`,
    `nodes: ${nodes === '' ? 'none' : nodes}`,
  ];
}

/** What did not go well, and why. */
export function problemLines({ nodes, messages }: CommandMeasures): readonly string[] {
  const of = (verdict: NodeVerdict) => nodes.filter((node) => node.verdict === verdict);
  return [
    ...section('failed with an error', of('error'), ({ message }) => message ?? 'no message came with it'),
    ...section('failed tests', of('failed'), testDetail),
    ...section('tests with a warning', of('warned'), testDetail),
    ...section('canceled', of('canceled')),
    ...section('not finished', of('unfinished')),
    ...section('skipped', of('skipped'), skipDetail),
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

function testDetail({ failingRows, diffTable }: NodeMeasure): string {
  if (diffTable !== null) return `expected and actual rows differ\n${diffTable}`;
  if (failingRows === null) return 'no row count came with it';
  return `${failingRows} failing ${failingRows === 1 ? 'row' : 'rows'}`;
}

function skipDetail({ skipReason, skipUpstream }: NodeMeasure): string {
  if (skipUpstream !== null) return `${skipUpstream} stands before it, and did not go well`;
  switch (skipReason) {
    case 'cached':
      return 'nothing had changed: an earlier result is used';
    case 'noop':
      return 'there is nothing to do for it';
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
