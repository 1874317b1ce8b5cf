import { defineConfig } from 'vitest/config';

/** Tests that need Python (and what it installs, once, into `.cache/` or the folder in RUN_BRIDGE_CACHE). */
export default defineConfig({
  test: {
    include: ['test/engine/**/*.test.ts'],
    testTimeout: 300_000,
    hookTimeout: 900_000,
    pool: 'forks',
    maxWorkers: 1,
  },
});
