import type { UnixNano } from '../../record/unix-nano.js';
import type { NodeMeasure } from './node-measure.js';
import type { OtherSpan } from './other-span.js';
import type { PathStep } from './path-step.js';

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
    return [{ kind: 'node', uniqueId, phase: '', startTimeUnixNano, endTimeUnixNano: end, hasEnd, skipUpstream }];
  }
  return phases.map((phase) => ({
    kind: 'node',
    uniqueId,
    phase: phase.phase,
    startTimeUnixNano: phase.startTimeUnixNano,
    endTimeUnixNano: phase.endTimeUnixNano ?? end,
    hasEnd: phase.endTimeUnixNano !== null,
    skipUpstream: phase.skipUpstream,
  }));
}

function otherStep({ endTimeUnixNano, verdict: _verdict, ...span }: OtherSpan, commandEnd: UnixNano): PathStep {
  return {
    ...span,
    endTimeUnixNano: endTimeUnixNano ?? commandEnd,
    hasEnd: endTimeUnixNano !== null,
    skipUpstream: null,
  };
}
