import { lengthText } from '../../core/text.js';
import { commandLengthMs } from '../verdict.js';
import { phaseWords } from '../words.js';
import { criticalWorkNano, pathSteps } from './critical-path.js';
import type { NodeMeasure } from './node-measure.js';
import type { CommandMeasures } from './run-totals.js';
import {
  type Interval,
  lengthOf,
  type PathStep,
  queuedParts,
  type TimePart,
  type TimeParts,
  withoutWaits,
} from './time-split.js';
import { later, sooner } from './timeline.js';
import { labelOf } from './troubles.js';

/** The parts of a run's time in the order in which a bar has them, with their words. */
const PART_WORDS: readonly (readonly [part: TimePart, words: string])[] = [
  ['parseNano', 'parsing'],
  ['compileNano', 'compiling'],
  ['runNano', 'running'],
  ['warehouseNano', 'waiting for the warehouse'],
  ['threadsNano', 'waiting for threads'],
  ['restNano', 'the rest'],
];

/** The length of all parts together. */
export function lengthOfParts(parts: TimeParts): bigint {
  return PART_WORDS.reduce((sum, [part]) => sum + parts[part], 0n);
}

/** The parts that took a thousandth of the time at least, in the order of the bar, with their words. */
export function shownParts(parts: TimeParts): typeof PART_WORDS {
  const lengthNano = lengthOfParts(parts);
  return PART_WORDS.filter(([part]) => parts[part] > 0n && parts[part] * 1_000n >= lengthNano);
}

/** Adds up where the time of several commands went. */
export function sumOfParts(all: readonly TimeParts[]): TimeParts {
  const sum = (part: TimePart) => all.reduce((so, parts) => so + parts[part], 0n);
  return {
    parseNano: sum('parseNano'),
    compileNano: sum('compileNano'),
    runNano: sum('runNano'),
    warehouseNano: sum('warehouseNano'),
    threadsNano: sum('threadsNano'),
    restNano: sum('restNano'),
  };
}

/** The parts with their shares, the longest first: `51 % parsing, 30 % waiting for the warehouse, 19 % the rest`. */
export function timeSentence(parts: TimeParts): string {
  return longestParts(parts)
    .map(([part, words]) => `${percentText(parts[part], lengthOfParts(parts))} ${words}`)
    .join(', ');
}

/** The same parts as `shownParts`, the longest first. */
export function longestParts(parts: TimeParts): typeof PART_WORDS {
  return shownParts(parts).toSorted(([a], [b]) => (parts[b] > parts[a] ? 1 : -1));
}

/** Formats a share: `51 %`, `2.5 %`, `0.0 %`. */
export function percentText(nano: bigint, ofNano: bigint): string {
  const percent = ofNano === 0n ? 0 : (Number(nano) / Number(ofNano)) * 100;
  return `${percent >= 9.95 || percent === 0 ? percent.toFixed(0) : percent.toFixed(1)} %`;
}

/** How many nodes were worked on and how many waited, over the time of a command. */
export interface Concurrency {
  /** The most nodes that were worked on at a time. */
  readonly peak: number;
  /** From the first node's start to the last one's end. */
  readonly average: number;
  /** The means over parts of the command's time of equal length. */
  readonly running: readonly number[];
  readonly queued: readonly number[];
}

/** Parts of the time in a chart of concurrency. */
const CHART_PARTS = 240;

/** How many nodes were worked on and how many waited for a thread or a connection; `null` if no node was worked on. */
export function concurrencyOf({ invocation, nodes, unselectedNodes }: CommandMeasures): Concurrency | null {
  const steps = pathSteps([...nodes, ...unselectedNodes], [], invocation.endTimeUnixNano);
  const work = steps.flatMap(withoutWaits);
  const workNano = lengthOf(work);
  if (workNano === 0n) return null;
  const [from, to] = work.reduce(
    ([first, last], part) => [sooner(part.startTimeUnixNano, first), later(part.endTimeUnixNano, last)],
    [invocation.endTimeUnixNano, invocation.startTimeUnixNano],
  );
  return {
    peak: peakOf(work),
    average: Number(workNano) / Math.max(1, Number(to - from)),
    running: meansOf(work, invocation),
    queued: meansOf(queuedParts(steps), invocation),
  };
}

function peakOf(intervals: readonly Interval[]): number {
  const inOrder = (of: (interval: Interval) => bigint) =>
    BigInt64Array.from(
      intervals.filter((one) => one.endTimeUnixNano > one.startTimeUnixNano),
      of,
    ).sort();
  const starts = inOrder(({ startTimeUnixNano }) => startTimeUnixNano);
  const ends = inOrder(({ endTimeUnixNano }) => endTimeUnixNano);
  let ended = 0;
  let peak = 0;
  for (const [index, start] of starts.entries()) {
    while ((ends[ended] ?? start + 1n) <= start) ended += 1;
    peak = Math.max(peak, index + 1 - ended);
  }
  return peak;
}

/** The mean number of intervals in each part of a command's time. */
function meansOf(intervals: readonly Interval[], { startTimeUnixNano, endTimeUnixNano }: Interval): readonly number[] {
  const partNano = Math.max(1, Number(endTimeUnixNano - startTimeUnixNano) / CHART_PARTS);
  const found = new Float64Array(CHART_PARTS);
  const at = (time: bigint) => Math.min(CHART_PARTS, Math.max(0, Number(time - startTimeUnixNano) / partNano));
  for (const interval of intervals) {
    const from = at(interval.startTimeUnixNano);
    const to = at(interval.endTimeUnixNano);
    for (let part = Math.floor(from); part < to; part += 1) {
      found[part] = (found[part] ?? 0) + Math.min(to, part + 1) - Math.max(from, part);
    }
  }
  return [...found];
}

/** What the critical path follows, in words. */
export const PATH_WORDS = {
  dependencies: 'by what nodes depend on; what is between them is waiting for a thread',
  times: 'by times: what ended last before each began',
} as const;

/** The name of a step of the critical path: `model orders`, `on run start`. */
export function stepLabel({ uniqueId, phase }: PathStep): string {
  return uniqueId === null ? phaseWords(phase) : labelOf({ uniqueId, nodeType: null, name: null });
}

/** What engineers compare runs by. */
export interface Pace {
  readonly lengthMs: number;
  readonly lengthNano: bigint;
  /** How long the steps of the critical path were at work. */
  readonly criticalNano: bigint;
  readonly concurrency: Concurrency | null;
  /** The node that was worked on longest, waits left out; `null` if there is none. */
  readonly longest: { readonly node: NodeMeasure; readonly workNano: bigint } | null;
  /** The node that was begun last, and how long after the command. */
  readonly latest: { readonly node: NodeMeasure; readonly afterNano: bigint } | null;
}

export function paceOf(command: CommandMeasures): Pace {
  const { invocation, nodes, totals, criticalPath } = command;
  const { startTimeUnixNano, endTimeUnixNano } = invocation;
  let longest: Pace['longest'] = null;
  let latest: Pace['latest'] = null;
  for (const node of nodes) {
    const end = node.endTimeUnixNano ?? endTimeUnixNano;
    const ended = node.phases.map((phase) => ({ ...phase, endTimeUnixNano: phase.endTimeUnixNano ?? end }));
    const workNano = lengthOf(ended.flatMap(withoutWaits));
    if (workNano > (longest?.workNano ?? 0n)) longest = { node, workNano };
    const begun = node.phases[0]?.startTimeUnixNano;
    if (begun !== undefined && begun - startTimeUnixNano > (latest?.afterNano ?? -1n)) {
      latest = { node, afterNano: begun - startTimeUnixNano };
    }
  }
  return {
    lengthMs: commandLengthMs(invocation),
    lengthNano: totals.lengthNano,
    criticalNano: criticalWorkNano(criticalPath),
    concurrency: concurrencyOf(command),
    longest,
    latest,
  };
}

/** What engineers compare runs by in words, beside the length. */
export function paceWords(pace: Pace): readonly (readonly [name: string, value: string])[] {
  const { lengthNano, criticalNano, concurrency, longest, latest } = pace;
  const length = (nano: bigint) => lengthText(Number(nano) / 1e6);
  return [
    ['at work on the critical path', `${length(criticalNano)} (${percentText(criticalNano, lengthNano)})`],
    ...(concurrency === null
      ? []
      : [
          [
            'nodes at a time',
            `${Math.round(concurrency.average * 10) / 10} on average, ${concurrency.peak} at most`,
          ] as const,
        ]),
    ...(longest === null ? [] : [['longest node', `${labelOf(longest.node)}, ${length(longest.workNano)}`] as const]),
    ...(latest === null ? [] : [['begun last', `${labelOf(latest.node)}, after ${length(latest.afterNano)}`] as const]),
  ];
}
