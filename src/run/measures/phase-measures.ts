import type { NodeMeasure } from './node-measure.js';
import type { OtherSpan } from './other-span.js';
import type { PhaseMeasure } from './phase-measure.js';

/** A command's time by phase, from its PhaseExecuted spans and the nodes in them, in the order in which they began. */
export function phaseMeasures(
  nodes: readonly Pick<NodeMeasure, 'phases'>[],
  others: readonly OtherSpan[],
  shares: ReadonlyMap<string, bigint>,
): readonly PhaseMeasure[] {
  const phases = new Map<string, PhaseMeasure>();
  for (const span of others) {
    if (span.kind === 'phase') phases.set(span.phase, withSpan(phases.get(span.phase), span));
  }
  for (const { phases: ofNode } of nodes) {
    for (const { phase, startTimeUnixNano, lifetimeNano, idleTimeMs, warehouseTimeNano } of ofNode) {
      const known = phases.get(phase) ?? emptyPhase(phase, startTimeUnixNano);
      phases.set(phase, {
        ...known,
        nodeCount: known.nodeCount + 1,
        nodeTimeNano: known.nodeTimeNano + (lifetimeNano ?? 0n),
        idleTimeMs: known.idleTimeMs + (idleTimeMs ?? 0),
        warehouseTimeNano: known.warehouseTimeNano + warehouseTimeNano,
      });
    }
  }
  return [...phases.values()]
    .map((phase) => ({ ...phase, shareNano: shares.get(phase.phase) ?? 0n }))
    .sort((a, b) => (a.startTimeUnixNano < b.startTimeUnixNano ? -1 : 1));
}

function withSpan(known: PhaseMeasure | undefined, span: OtherSpan): PhaseMeasure {
  const { phase, startTimeUnixNano, endTimeUnixNano } = span;
  const lengthNano = endTimeUnixNano === null ? 0n : endTimeUnixNano - startTimeUnixNano;
  if (known === undefined) {
    return { ...emptyPhase(phase, startTimeUnixNano), endTimeUnixNano, spanTimeNano: lengthNano };
  }
  const isEarlier = startTimeUnixNano < known.startTimeUnixNano;
  const isLater = endTimeUnixNano !== null && endTimeUnixNano > (known.endTimeUnixNano ?? 0n);
  return {
    ...known,
    startTimeUnixNano: isEarlier ? startTimeUnixNano : known.startTimeUnixNano,
    endTimeUnixNano: isLater ? endTimeUnixNano : known.endTimeUnixNano,
    spanTimeNano: known.spanTimeNano + lengthNano,
  };
}

function emptyPhase(phase: string, startTimeUnixNano: bigint): PhaseMeasure {
  return {
    phase,
    startTimeUnixNano,
    endTimeUnixNano: null,
    spanTimeNano: 0n,
    nodeCount: 0,
    nodeTimeNano: 0n,
    idleTimeMs: 0,
    warehouseTimeNano: 0n,
    shareNano: 0n,
  };
}
