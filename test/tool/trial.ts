/**
 * What a trial with random steps is run with. As a part of the tests it has always the same seed and its smallest size;
 * `npm run trials` gives it a seed of the clock and as many seconds as it may take.
 */
export const TRIAL = {
  seed: Number(process.env.TRIAL_SEED ?? 20_261_121),
  /** `undefined` as a part of the tests, which do what is always the same and hold no limit of time or memory. */
  seconds: process.env.TRIAL_SECONDS === undefined ? undefined : Number(process.env.TRIAL_SECONDS),
} as const;

/**
 * How much of something a trial does.
 * @param fixed as a part of the tests
 * @param secondsEach about how long one takes on two cores
 */
export function trialSize(fixed: number, secondsEach: number): number {
  return TRIAL.seconds === undefined ? fixed : Math.max(fixed, Math.round(TRIAL.seconds / secondsEach));
}
