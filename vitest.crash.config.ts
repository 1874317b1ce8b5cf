import { defineConfig } from 'vitest/config';

/** Tests that kill the built program, let it run for long, or start it on much data; one after the other, since they measure. */
export default defineConfig({
  test: {
    globalSetup: ['test/tool/postgres-setup.ts'],
    include: ['test/crash/**/*.test.ts'],
    testTimeout: 300_000,
    hookTimeout: 1_800_000,
    pool: 'forks',
    fileParallelism: false,
  },
});
