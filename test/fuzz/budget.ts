// How many bodies are tried, and which: body number `n` of a seed is the same everywhere. Set by `npm run fuzz` through
// the environment; what CI runs is the default.
const bodyCount = Number(process.env.FUZZ_BODIES ?? 20_000);

/** What is tried. */
export const BUDGET = {
  bodyCount,
  /** Whether there are enough of them to count what came of them; false where one is tried again. */
  isWhole: bodyCount >= 1_000,
  /** Any 32 bits; the default stays the same, so that CI's result does not depend on luck. */
  seed: Number(process.env.FUZZ_SEED ?? 20_261_121),
  /** Number of the first body. */
  first: Number(process.env.FUZZ_FIRST ?? 0),
} as const;
