import { TRIAL, trialSize } from '../tool/trial.js';

/** About how long one takes in all three tests, in seconds. */
const SECONDS_A_BODY = 0.01;
const bodyCount = Number(process.env.FUZZ_BODIES ?? trialSize(2_000, SECONDS_A_BODY));

/** What is tried: body number `n` of a seed is the same everywhere. A failure says the variables that try its body alone. */
export const BUDGET = {
  bodyCount,
  /** Whether there are enough of them to count what came of them; false where one is tried again. */
  isWhole: bodyCount >= 1_000,
  /** Any 32 bits. */
  seed: Number(process.env.FUZZ_SEED ?? TRIAL.seed),
  /** Number of the first body. */
  first: Number(process.env.FUZZ_FIRST ?? 0),
} as const;

/** The command that tries some bodies again. */
export function fuzzAgain(first: number, bodies: number): string {
  return `FUZZ_SEED=${BUDGET.seed} FUZZ_FIRST=${first} FUZZ_BODIES=${bodies} npx vitest run --project=fuzz`;
}
