import type { UnixNano } from '../../record/telemetry-record.js';
import type { NodeMeasure } from './node-measure.js';
import { grow, type Interval, lengthOf, type OtherSpan, type PathStep } from './time-split.js';

/** A step of the critical path, and the step it waited for. */
export interface PathLink {
  readonly step: PathStep;
  /**
   * How the predecessor is known: `reported` by the engine (`node_skip_upstream_detail`); `dependsOn`, it is upstream by the
   * manifest; `sameNode`, the node's own earlier phase; `inferred`, the last that ended before; `start`, nothing before it but
   * the start of the command.
   */
  readonly basis: 'reported' | 'dependsOn' | 'sameNode' | 'inferred' | 'start';
  /** From the end of the predecessor (for the first step, from the start of the command) to the start of this step, and the step's own waits. */
  readonly waitNano: bigint;
  /** The step's own length without its waits. */
  readonly timeNano: bigint;
}

/** The chain of steps, each of which waited for the one before, that ends with the last step of the command. */
export interface CriticalPath {
  /** What it follows from node to node: what a manifest says that they depend on, or their times alone. */
  readonly follows: 'dependencies' | 'times';
  /** From the first to the last. Their waits and times and `tailNano` add up to the command's length. */
  readonly links: readonly PathLink[];
  /** From the last step's end to the command's. */
  readonly tailNano: bigint;
}

/** A node that continues within this time after its earlier phase waited for no other. */
const AT_ONCE_NANO = 1_000_000n;

/** What each node waits for: unique ids of nodes, by the unique id of the node that waits. */
export type Upstream = ReadonlyMap<string, readonly string[]>;

/**
 * The chain of waits that determined a command's duration, found backwards from the step that ended last. The engine reports no
 * dependency between nodes except the cause of a skip, so the predecessor of a step is, in this order:
 * 1. the node's own earlier phase, if the step started within 1 ms after it;
 * 2. the node that the engine reports as the cause of its skip (`reported`);
 * 3. where it is known what nodes depend on: the last to end among those upstream (`dependsOn`) and the node's own earlier phase; of
 *    a node that depends on none, the last hook or phase without nodes (inferred). What is between them is waiting for a thread;
 * 4. where it is not, for a node's later phase: the last to end among the node's own earlier phase and other nodes in the same
 *    phase, whose end frees a thread or a connection (inferred);
 * 5. and for a node's first phase: the last to end among nodes with their last phase, hooks, and phases without
 *    nodes, since a node starts when its dependencies are done (inferred);
 * 6. for hooks and phases: the last step that ended before (inferred).
 * @param command its start and end
 * @param upstream what nodes depend on; `null` where that is not known
 */
export function criticalPath(steps: readonly PathStep[], command: Interval, upstream: Upstream | null): CriticalPath {
  const { startTimeUnixNano, endTimeUnixNano } = command;
  const order = new StepOrder(steps);
  const links: PathLink[] = [];
  for (let step = order.last; step !== undefined; ) {
    const found = waitedFor(step, order, upstream);
    const waitedNano = lengthOf(step.waits);
    links.push({
      step,
      basis: found?.basis ?? 'start',
      waitNano: step.startTimeUnixNano - (found?.step.endTimeUnixNano ?? startTimeUnixNano) + waitedNano,
      timeNano: step.endTimeUnixNano - step.startTimeUnixNano - waitedNano,
    });
    step = found?.step;
  }
  return {
    follows: upstream === null ? 'times' : 'dependencies',
    links: links.reverse(),
    tailNano: endTimeUnixNano - (order.last?.endTimeUnixNano ?? startTimeUnixNano),
  };
}

/** What of the command's length the steps of its critical path were at work, without waits. */
export function criticalWorkNano({ links }: CriticalPath): bigint {
  return links.reduce((sum, { timeNano }) => sum + timeNano, 0n);
}

function waitedFor(
  step: PathStep,
  order: StepOrder,
  upstream: Upstream | null,
): Pick<PathLink, 'step' | 'basis'> | undefined {
  if (step.kind !== 'node') return as('inferred', order.lastBefore(step));
  const own = order.ownBefore(step);
  if (own !== undefined && step.startTimeUnixNano - own.endTimeUnixNano <= AT_ONCE_NANO) return as('sameNode', own);
  const cause = step.skipUpstream === null ? undefined : order.lastOfNodeBefore(step.skipUpstream, step);
  if (cause !== undefined) return as('reported', cause);
  if (upstream !== null) {
    const parent = order.lastOfNodesBefore(upstream.get(step.uniqueId ?? '') ?? [], step);
    if (own === undefined) return as('dependsOn', parent) ?? as('inferred', order.lastOtherBefore(step));
    return parent !== undefined && parent.endTimeUnixNano > own.endTimeUnixNano
      ? as('dependsOn', parent)
      : as('sameNode', own);
  }
  if (own === undefined) return as('inferred', order.lastDoneBefore(step) ?? order.lastBefore(step));
  const other = order.lastInPhaseBefore(step);
  return other !== undefined && other.endTimeUnixNano > own.endTimeUnixNano
    ? as('inferred', other)
    : as('sameNode', own);
}

function as(basis: PathLink['basis'], step: PathStep | undefined) {
  return step && { basis, step };
}

/** Steps by their ends, to be asked what ended last before another began. */
class StepOrder {
  private readonly all: readonly PathStep[];
  private readonly byNode = new Map<string, PathStep[]>();
  private readonly byPhase = new Map<string, PathStep[]>();
  /** What is done: nodes' last steps, hooks, phases. */
  private readonly done: readonly PathStep[];
  /** Hooks and phases. */
  private readonly others: readonly PathStep[];

  constructor(steps: readonly PathStep[]) {
    this.all = [...steps].sort(compareEnds);
    for (const step of this.all) {
      if (step.kind !== 'node' || step.uniqueId === null) continue;
      grow(this.byNode, step.uniqueId, step);
      grow(this.byPhase, step.phase, step);
    }
    this.done = this.all.filter((step) => {
      if (step.kind !== 'node' || step.uniqueId === null) return true;
      return this.byNode.get(step.uniqueId)?.at(-1) === step;
    });
    this.others = this.all.filter(({ kind }) => kind !== 'node');
  }

  /** The step that ended last; of several the one that began first. */
  get last(): PathStep | undefined {
    return this.all.at(-1);
  }

  /** The last step that ended before another started. */
  lastBefore(step: PathStep): PathStep | undefined {
    return lastIn(this.all, step);
  }

  /** The last that was done before a step began. */
  lastDoneBefore(step: PathStep): PathStep | undefined {
    return lastIn(this.done, step);
  }

  /** The node's own phase that ended last before a step of it began. */
  ownBefore(step: PathStep): PathStep | undefined {
    return step.uniqueId === null ? undefined : this.lastOfNodeBefore(step.uniqueId, step);
  }

  lastOfNodeBefore(uniqueId: string, step: PathStep): PathStep | undefined {
    return lastIn(this.byNode.get(uniqueId) ?? [], step);
  }

  /** The last to end of several nodes. */
  lastOfNodesBefore(uniqueIds: readonly string[], step: PathStep): PathStep | undefined {
    const ends = uniqueIds.flatMap((uniqueId) => this.lastOfNodeBefore(uniqueId, step) ?? []);
    return ends.sort(compareEnds).at(-1);
  }

  /** The last hook or phase that ended before a step began. */
  lastOtherBefore(step: PathStep): PathStep | undefined {
    return lastIn(this.others, step);
  }

  /** The last of another node in the same phase. */
  lastInPhaseBefore(step: PathStep): PathStep | undefined {
    return lastIn(this.byPhase.get(step.phase) ?? [], step);
  }
}

/** Among equal ends the one that began first stands last, so that chains are long. */
function compareEnds(a: PathStep, b: PathStep): number {
  if (a.endTimeUnixNano !== b.endTimeUnixNano) return a.endTimeUnixNano < b.endTimeUnixNano ? -1 : 1;
  if (a.startTimeUnixNano !== b.startTimeUnixNano) return a.startTimeUnixNano > b.startTimeUnixNano ? -1 : 1;
  return nameOf(a) < nameOf(b) ? -1 : 1;
}

function nameOf({ uniqueId, phase }: PathStep): string {
  return `${uniqueId} ${phase}`;
}

/** @param sorted by end. A step that started no earlier is no predecessor, so chains end, also among steps without duration. */
function lastIn(sorted: readonly PathStep[], { startTimeUnixNano }: PathStep): PathStep | undefined {
  let low = 0;
  for (let high = sorted.length; low < high; ) {
    const middle = (low + high) >>> 1;
    const step = sorted[middle];
    if (step !== undefined && step.endTimeUnixNano <= startTimeUnixNano) low = middle + 1;
    else high = middle;
  }
  for (let at = low - 1; at >= 0; at--) {
    const step = sorted[at];
    if (step !== undefined && step.startTimeUnixNano < startTimeUnixNano) return step;
  }
  return undefined;
}

/** What steps are made of. */
type StepNode = Pick<NodeMeasure, 'uniqueId' | 'skipUpstream' | 'startTimeUnixNano' | 'endTimeUnixNano' | 'phases'>;

/**
 * What of a command takes time: each node in each phase, hooks, and the phases in which there is neither. A span that never
 * ended lasts as long as its node, or as the command.
 * @param endTimeUnixNano the command's end
 */
export function pathSteps(
  nodes: readonly StepNode[],
  others: readonly OtherSpan[],
  endTimeUnixNano: UnixNano,
): readonly PathStep[] {
  const steps = [
    ...nodes.flatMap((node) => nodeSteps(node, endTimeUnixNano)),
    ...others.filter(({ kind }) => kind === 'hook').map((hook) => otherStep(hook, endTimeUnixNano)),
  ];
  const inner = new Set(steps.map(({ phase }) => phase));
  const phases = others.filter(({ kind, phase }) => kind === 'phase' && !inner.has(phase));
  return [...steps, ...phases.map((phase) => otherStep(phase, endTimeUnixNano))];
}

function nodeSteps(node: StepNode, commandEnd: UnixNano): PathStep[] {
  const { uniqueId, skipUpstream, startTimeUnixNano, phases } = node;
  const end = node.endTimeUnixNano ?? commandEnd;
  // A log that holds no more than the nodes themselves, or a node that never got to a phase.
  if (phases.length === 0 && startTimeUnixNano !== null) {
    const hasEnd = node.endTimeUnixNano !== null;
    const times = { startTimeUnixNano, endTimeUnixNano: end, waits: [] };
    return [{ kind: 'node', uniqueId, phase: '', ...times, hasEnd, skipUpstream }];
  }
  return phases.map((phase) => ({
    kind: 'node',
    uniqueId,
    phase: phase.phase,
    startTimeUnixNano: phase.startTimeUnixNano,
    endTimeUnixNano: phase.endTimeUnixNano ?? end,
    hasEnd: phase.endTimeUnixNano !== null,
    skipUpstream: phase.skipUpstream,
    waits: phase.waits,
  }));
}

function otherStep(
  { kind, uniqueId, phase, startTimeUnixNano, endTimeUnixNano }: OtherSpan,
  commandEnd: UnixNano,
): PathStep {
  return {
    ...{ kind, uniqueId, phase, startTimeUnixNano },
    endTimeUnixNano: endTimeUnixNano ?? commandEnd,
    hasEnd: endTimeUnixNano !== null,
    skipUpstream: null,
    waits: [],
  };
}
