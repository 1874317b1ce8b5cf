import { defineConfig } from 'vitest/config';

/** Tests with other programs: Jaeger, the Collector and an S3 server, built from Go modules (minutes the first time); clients from PyPI. */
export default defineConfig({
  test: {
    include: ['test/peers/**/*.test.ts'],
    testTimeout: 180_000,
    hookTimeout: 1_800_000,
    pool: 'forks',
    fileParallelism: false,
  },
});
