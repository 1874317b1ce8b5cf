import type { CleanUp } from './clean-up.js';
import type { KillMoment } from './kill-plan.js';

/** How a trial is run. */
export interface TrialOptions {
  /** When it is killed, one kill after the other. */
  readonly plan: readonly KillMoment[];
  /** The same seed gives the same load and the same moments, as far as the machine lets it. */
  readonly seed: number;
  readonly cleanUp: CleanUp;
}
