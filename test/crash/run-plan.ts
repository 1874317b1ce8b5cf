import { RunTemplate } from './run-template.js';
import type { SeededRandom } from './seeded-random.js';

interface Kind {
  readonly verdicts: readonly string[];
  readonly maxCopies: number;
}

/** Samples of the engine that the load is made of, and the verdicts of their commands (by exit code and story). */
const KINDS: Readonly<Record<string, Kind>> = {
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

/** An endless list of runs, the same for the same randomness. */
export class RunPlan {
  private readonly templates: readonly (Kind & { readonly template: RunTemplate })[];
  private count: number;

  /**
   * @param samples which kinds of runs; all where left out
   * @param firstNumber of its first run; default 1
   */
  constructor(
    private readonly random: SeededRandom,
    samples: readonly string[] = Object.keys(KINDS),
    firstNumber = 1,
  ) {
    this.count = firstNumber - 1;
    this.templates = Object.entries(KINDS)
      .filter(([sample]) => samples.includes(sample))
      .map(([sample, kind]) => ({ template: RunTemplate.read(sample), ...kind }));
  }

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
