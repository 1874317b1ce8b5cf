import { defineConfig } from 'vitest/config';

/** Damaged and made-up bodies against the decoders and the receiver; how many, test/fuzz/budget.ts says. */
export default defineConfig({
  test: {
    include: ['test/fuzz/**/*.test.ts'],
    testTimeout: 6 * 3_600_000,
    hookTimeout: 30_000,
    pool: 'forks',
    execArgv: ['--expose-gc'],
    fileParallelism: false,
  },
});
