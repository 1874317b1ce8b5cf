import { cut } from '../../core/text.js';
import type { CommandErrors } from '../../storage/run-store.js';
import type { NodeCounts, NodeVerdict } from '../verdict.js';
import { shareMs } from './compare-commands.js';
import { EXECUTING_PHASES, isBad } from './execution.js';
import type { NodeMeasure } from './node-measure.js';
import { type CommandScope, scopeOf } from './run-scope.js';
import type { CommandMeasures } from './run-totals.js';
import { lengthOf } from './time-split.js';
import { labelOf, type Trouble, troublesOf } from './troubles.js';

/** What lists of runs and comparisons with earlier runs need of a command, a hundredth of its measures. */
export interface CommandDigest {
  /** Position of the command in its trace, from 1. */
  readonly index: number;
  readonly counts: NodeCounts;
  /** Skipped nodes for which there was nothing to do. */
  readonly noOpCount: number;
  /** What it worked on. */
  readonly scope: CommandScope;
  /** Unique ids of the nodes that it executed and that failed, and of those that did what they should, with a warning or without. */
  readonly failed: readonly string[];
  readonly good: readonly string[];
  /** Why it did not end well; `null` if nothing went wrong. */
  readonly cause: CommandCause | null;
  /** What each of its phases took, in milliseconds: `PARSE`, `RUN`. */
  readonly phaseMs: Readonly<Record<string, number>>;
  readonly work: CommandWork;
}

/** What each node that was worked on took: the n-th of all lists is one node's. Of skipped nodes there is nothing. */
export interface CommandWork {
  readonly uniqueIds: readonly string[];
  /** `model orders` */
  readonly labels: readonly string[];
  readonly verdicts: readonly NodeVerdict[];
  /** Whether it was executed: what was only compiled or shown, or interrupted, has cost time and makes no history. */
  readonly executed: readonly boolean[];
  /** What of the command's length fell to it, in milliseconds: waiting for others takes none. */
  readonly sharesMs: Float64Array;
  /** How long it was executed, without its waits, in milliseconds; `NaN` where it was not. */
  readonly tookMs: Float64Array;
  /** `rows_affected`; `NaN` where the engine gives none. */
  readonly rows: Float64Array;
  /** Time of its queries, in milliseconds. */
  readonly warehouseMs: Float64Array;
  /** Time of queries that name no node, in milliseconds. */
  readonly otherWarehouseMs: number;
}

/** The first cause of a failure in a line. */
export interface CommandCause {
  /** All that failed, for example `2 nodes failed with an error, 10 tests failed`. */
  readonly title: string;
  /** `model orders`; `null` where no node is the cause. */
  readonly label: string | null;
  /** The first line of its error; `null` where it has none. */
  readonly reason: string | null;
  /** The same without literals. */
  readonly redactedReason: string | null;
}

/** Longest line that is kept of an error, in characters. */
const MAX_REASON_CHARS = 300;

/** @param redact removes literals from a text of the command */
export function commandDigest(command: CommandMeasures, redact: (text: string) => string): CommandDigest {
  const { invocation, nodes, totals } = command;
  const executed = nodes.filter((node) => node.isExecuted);
  const idsOf = (some: readonly NodeMeasure[]) => some.map(({ uniqueId }) => uniqueId);
  const errors = troublesOf(command).filter(({ severity }) => severity === 'error');
  const [first] = errors.flatMap(({ troubles }) => troubles);
  return {
    index: invocation.index,
    counts: totals.nodeCounts,
    noOpCount: totals.noOpCount,
    scope: scopeOf(command),
    failed: idsOf(executed.filter(({ verdict }) => isBad(verdict))),
    good: idsOf(executed.filter(({ verdict }) => !isBad(verdict))),
    cause: first === undefined ? null : causeOf(errors.map(({ title }) => title).join(', '), first, redact),
    phaseMs: Object.fromEntries(command.phases.map((one) => [one.phase, Number(one.spanTimeNano) / 1e6])),
    work: workOf(command),
  };
}

function workOf({ nodes, totals }: CommandMeasures): CommandWork {
  const worked = nodes.filter(({ verdict }) => verdict !== 'skipped' && verdict !== 'unfinished');
  const numbers = (of: (node: NodeMeasure) => number | null) => Float64Array.from(worked, (node) => of(node) ?? NaN);
  return {
    uniqueIds: worked.map(({ uniqueId }) => uniqueId),
    labels: worked.map(labelOf),
    verdicts: worked.map(({ verdict }) => verdict),
    executed: worked.map(({ isExecuted }) => isExecuted),
    sharesMs: numbers(shareMs),
    tookMs: numbers(executedMs),
    rows: numbers(({ rows }) => rows),
    warehouseMs: numbers(({ warehouseTimeNano }) => Number(warehouseTimeNano) / 1e6),
    otherWarehouseMs: Number(totals.otherWarehouseTimeNano) / 1e6,
  };
}

function executedMs({ phases }: NodeMeasure): number | null {
  const executed = phases.flatMap(({ phase, lifetimeNano, waits }) =>
    lifetimeNano !== null && EXECUTING_PHASES.includes(phase) ? [Number(lifetimeNano - lengthOf(waits)) / 1e6] : [],
  );
  return executed.length === 0 ? null : executed.reduce((sum, one) => sum + one);
}

/** Errors of a command by which its run is found, and how much of them is kept, in characters. */
const MAX_SEARCHED_ERRORS = 100;
const MAX_SEARCHED_CHARS = 20_000;

/** What went wrong in a command, in lines; `null` where nothing did. @param redact as for `commandDigest` */
export function commandErrors(command: CommandMeasures, redact: (text: string) => string): CommandErrors | null {
  const troubles = troublesOf(command)
    .filter(({ severity }) => severity === 'error')
    .flatMap((section) => section.troubles)
    .slice(0, MAX_SEARCHED_ERRORS);
  if (troubles.length === 0) return null;
  const text = (say: (line: string) => string) =>
    troubles
      .map(({ label, reason: [line = ''] }) => `${label ?? ''} ${say(cut(line, MAX_REASON_CHARS))}`.trim())
      .join('\n')
      .slice(0, MAX_SEARCHED_CHARS);
  return { index: command.invocation.index, text: text((line) => line), redactedText: text(redact) };
}

function causeOf(title: string, { label, reason }: Trouble, redact: (text: string) => string): CommandCause {
  const [line = null] = reason;
  return {
    ...{ title, label },
    reason: line === null ? null : cut(line, MAX_REASON_CHARS),
    redactedReason: line === null ? null : cut(redact(line), MAX_REASON_CHARS),
  };
}
