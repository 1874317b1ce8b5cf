import { defineConfig } from 'vitest/config';

/** The pages of the built program in a real browser, which the packages bring; one test after the other. */
export default defineConfig({
  test: {
    include: ['test/browser/**/*.test.ts'],
    testTimeout: 60_000,
    hookTimeout: 60_000,
    pool: 'forks',
    fileParallelism: false,
  },
});
