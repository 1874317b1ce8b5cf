import type { PathStep } from './path-step.js';

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

  /** The last of all that ended before a step began. */
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

/** @param sorted by end. A step that began no earlier is none to wait for: so chains end, also among steps without a length. */
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
