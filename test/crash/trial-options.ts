import type { CleanUp } from './clean-up.js';

/** How a trial is run. */
export interface TrialOptions {
  readonly kills: number;
  /** The same seed gives the same load and the same moments, as far as the machine lets it. */
  readonly seed: number;
  readonly cleanUp: CleanUp;
}
