import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { bodiesIn } from '../fake/sample-run.js';
import { RunTemplate } from './run-template.js';
import type { SeededRandom } from './seeded-random.js';

interface RunKind {
  readonly verdicts: readonly string[];
  readonly maxCopies: number;
}

/** Samples of the engine that the load is made of, and the verdicts of their commands (by exit code and story). */
const KINDS: Readonly<Record<string, RunKind>> = {
  'build-mixed': { verdicts: ['error'], maxCopies: 4 },
  'build-clean': { verdicts: ['success'], maxCopies: 8 },
  'fail-fast': { verdicts: ['error'], maxCopies: 4 },
  interrupted: { verdicts: ['canceled'], maxCopies: 2 },
  parse: { verdicts: ['success'], maxCopies: 1 },
  joined: { verdicts: ['success'], maxCopies: 1 },
  overlapping: { verdicts: ['success', 'error'], maxCopies: 1 },
};

/** The engine's large runs, which are sent as they are. */
const LARGE_KINDS: Readonly<Record<string, RunKind>> = {
  'big-build': { verdicts: ['error'], maxCopies: 1 },
  'big-build-trace': { verdicts: ['error'], maxCopies: 1 },
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
  private readonly templates: readonly (RunKind & { readonly template: RunTemplate })[];
  private count: number;

  /**
   * @param samples which kinds of runs; all small ones where left out. One with a slash is a folder of OTLP bodies, beside which a
   * file says with which code the engine ended
   * @param firstNumber of its first run; default 1
   */
  constructor(
    private readonly random: SeededRandom,
    samples: readonly string[] = Object.keys(KINDS),
    firstNumber = 1,
  ) {
    this.count = firstNumber - 1;
    const known = { ...KINDS, ...LARGE_KINDS };
    this.templates = [
      ...Object.entries(known)
        .filter(([sample]) => samples.includes(sample))
        .map(([sample, kind]) => ({ template: RunTemplate.read(sample), ...kind })),
      ...samples.filter((sample) => sample.includes('/')).map(readCorpus),
    ];
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

function readCorpus(folder: string): RunKind & { readonly template: RunTemplate } {
  const exitCode = readFileSync(join(folder, '..', 'exit-code'), 'utf8').trim();
  const verdict = exitCode === '0' ? 'success' : 'error';
  return { template: RunTemplate.of(folder, bodiesIn(folder)), verdicts: [verdict], maxCopies: 1 };
}
