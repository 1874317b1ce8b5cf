import { RunTemplate } from './run-template.js';
import type { SeededRandom } from './seeded-random.js';

/** Samples of the engine that the load is made of, and the verdicts of their commands (by exit code and story). */
const SAMPLES: Readonly<Record<string, { readonly verdicts: readonly string[]; readonly maxCopies: number }>> = {
  'build-mixed': { verdicts: ['error'], maxCopies: 4 },
  'build-clean': { verdicts: ['success'], maxCopies: 8 },
  'fail-fast': { verdicts: ['error'], maxCopies: 4 },
  interrupted: { verdicts: ['canceled'], maxCopies: 2 },
  parse: { verdicts: ['success'], maxCopies: 1 },
  joined: { verdicts: ['success'], maxCopies: 1 },
  overlapping: { verdicts: ['success', 'error'], maxCopies: 1 },
};

/** A run that is to be sent. */
export interface PlannedRun {
  readonly runNumber: number;
  readonly template: RunTemplate;
  readonly copies: number;
  /** The verdicts that its commands have to get, in any order. */
  readonly verdicts: readonly string[];
}

/** An endless list of runs of all kinds, the same for the same randomness. */
export class RunPlan {
  private readonly templates = Object.entries(SAMPLES).map(([sample, about]) => ({
    template: RunTemplate.read(sample),
    ...about,
  }));
  private count = 0;

  constructor(private readonly random: SeededRandom) {}

  /** Numbers of runs go from 1 to this. */
  get begunCount(): number {
    return this.count;
  }

  next(): PlannedRun {
    this.count += 1;
    const { template, verdicts, maxCopies } = this.random.pick(this.templates);
    return { runNumber: this.count, template, verdicts, copies: 1 + Math.floor(this.random.next() * maxCopies) };
  }
}
