import type { UnixNano } from '../../record/unix-nano.js';
import type { PathStep } from './path-step.js';
import { StepOrder } from './step-order.js';

/** A step of the critical path, and what it waited for. */
export interface PathLink {
  readonly step: PathStep;
  /**
   * How it is known what was waited for: `told` by the engine (`node_skip_upstream_detail`); `sameNode`, the node's own
   * earlier phase; `inferred`, the last that ended before; `start`, nothing that was seen but the command's beginning.
   */
  readonly basis: 'told' | 'sameNode' | 'inferred' | 'start';
  /** From the end of what was waited for (for the first step, from the command's start) to this step's start. */
  readonly waitNano: bigint;
  /** The step's own length. */
  readonly timeNano: bigint;
}

/** The chain of steps, each of which waited for the one before, that ends with the command's last step. */
export interface CriticalPath {
  /** From the first to the last. Their waits and times and `tailNano` add up to the command's length. */
  readonly links: readonly PathLink[];
  /** From the last step's end to the command's. */
  readonly tailNano: bigint;
}

/** A node that goes on within this time after its earlier phase waited for nobody else. */
const AT_ONCE_NANO = 1_000_000n;

/**
 * The chain of waits that set a command's length, found backwards from the step that ended last. The engine tells of no
 * dependency between nodes but the one that a node was skipped for, so what a step waited for is, in this order:
 * 1. the node's own earlier phase, where the step began within 1 ms after it;
 * 2. the node that the engine says it was skipped for (told);
 * 3. for a node's later phase: what ended last before, among the node's own earlier phase and other nodes in the same phase,
 *    whose end frees a thread or a connection (inferred);
 * 4. for a node's first phase: what ended last before, among nodes with their last phase, hooks, and phases without
 *    nodes, since a node is begun when all that it needs is done (inferred);
 * 5. for hooks and phases: whatever ended last before (inferred).
 * @param startTimeUnixNano the command's start, @param endTimeUnixNano and its end
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
