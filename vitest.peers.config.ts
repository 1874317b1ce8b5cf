import { defineConfig } from 'vitest/config';

/** Tests with real Jaeger and the real Collector; they are built from Go modules, minutes the first time. */
export default defineConfig({
  test: {
    include: ['test/peers/**/*.test.ts'],
    testTimeout: 180_000,
    hookTimeout: 1_800_000,
    pool: 'forks',
    fileParallelism: false,
  },
});
