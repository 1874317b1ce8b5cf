import type { UnixNano } from '../../record/unix-nano.js';
import type { PathStep } from './path-step.js';

/** A step of the critical path, and the step it waited for. */
export interface PathLink {
  readonly step: PathStep;
  /**
   * How the predecessor is known: `told` by the engine (`node_skip_upstream_detail`); `sameNode`, the node's own
   * earlier phase; `inferred`, the last that ended before; `start`, nothing before it but the start of the command.
   */
  readonly basis: 'told' | 'sameNode' | 'inferred' | 'start';
  /** From the end of the predecessor (for the first step, from the start of the command) to the start of this step. */
  readonly waitNano: bigint;
  /** The step's own length. */
  readonly timeNano: bigint;
}

/** The chain of steps, each of which waited for the one before, that ends with the last step of the command. */
export interface CriticalPath {
  /** From the first to the last. Their waits and times and `tailNano` add up to the command's length. */
  readonly links: readonly PathLink[];
  /** From the last step's end to the command's. */
  readonly tailNano: bigint;
}

/** A node that continues within this time after its earlier phase waited for no other. */
const AT_ONCE_NANO = 1_000_000n;

/**
 * The chain of waits that determined a command's duration, found backwards from the step that ended last. The engine reports no
 * dependency between nodes except the cause of a skip, so the predecessor of a step is, in this order:
 * 1. the node's own earlier phase, if the step started within 1 ms after it;
 * 2. the node that the engine reports as the cause of its skip (told);
 * 3. for a node's later phase: the last to end among the node's own earlier phase and other nodes in the same phase,
 *    whose end frees a thread or a connection (inferred);
 * 4. for a node's first phase: the last to end among nodes with their last phase, hooks, and phases without
 *    nodes, since a node starts when its dependencies are done (inferred);
 * 5. for hooks and phases: the last step that ended before (inferred).
 * @param startTimeUnixNano start of the command @param endTimeUnixNano its end
 */
export function criticalPath(
  steps: readonly PathStep[],
  startTimeUnixNano: UnixNano,
  endTimeUnixNano: UnixNano,
): CriticalPath {
  const order = new StepOrder(steps);
  const links: PathLink[] = [];
  for (let step = order.last; step !== undefined; ) {
    const found = waitedFor(step, order);
    links.push({
      step,
      basis: found?.basis ?? 'start',
      waitNano: step.startTimeUnixNano - (found?.step.endTimeUnixNano ?? startTimeUnixNano),
      timeNano: step.endTimeUnixNano - step.startTimeUnixNano,
    });
    step = found?.step;
  }
  return { links: links.reverse(), tailNano: endTimeUnixNano - (order.last?.endTimeUnixNano ?? startTimeUnixNano) };
}

function waitedFor(step: PathStep, order: StepOrder): Pick<PathLink, 'step' | 'basis'> | undefined {
  if (step.kind !== 'node') return as('inferred', order.lastBefore(step));
  const own = order.ownBefore(step);
  if (own !== undefined && step.startTimeUnixNano - own.endTimeUnixNano <= AT_ONCE_NANO) return as('sameNode', own);
  const told = step.skipUpstream === null ? undefined : order.lastOfNodeBefore(step.skipUpstream, step);
  if (told !== undefined) return as('told', told);
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
export class StepOrder {
  private readonly all: readonly PathStep[];
  private readonly byNode = new Map<string, PathStep[]>();
  private readonly byPhase = new Map<string, PathStep[]>();
  /** What is done: nodes' last steps, hooks, phases. */
  private readonly done: readonly PathStep[];

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

  /** The last of another node in the same phase. */
  lastInPhaseBefore(step: PathStep): PathStep | undefined {
    return lastIn(this.byPhase.get(step.phase) ?? [], step);
  }
}

function grow(map: Map<string, PathStep[]>, key: string, step: PathStep): void {
  const known = map.get(key);
  if (known === undefined) map.set(key, [step]);
  else known.push(step);
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
