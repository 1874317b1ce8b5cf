import { defineConfig } from 'vitest/config';

/** Tests of the built program that take long: faults of disks and destinations, large files, commands that are cut off. */
export default defineConfig({
  test: {
    include: ['test/long/**/*.test.ts'],
    testTimeout: 30_000,
    hookTimeout: 30_000,
    pool: 'forks',
    maxWorkers: 2,
  },
});
