/**
 * How many bodies are tried, and which: body number `n` of a seed is the same everywhere. Set by `npm run fuzz`
 * through the environment; what CI runs is the default.
 */
export const BUDGET = {
  bodyCount: Number(process.env.FUZZ_BODIES ?? 20_000),
  /** Any 32 bits; the default stays the same, so that CI's result does not depend on luck. */
  seed: Number(process.env.FUZZ_SEED ?? 20_261_121),
  /** Number of the first body. */
  first: Number(process.env.FUZZ_FIRST ?? 0),
} as const;
