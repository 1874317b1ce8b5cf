import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    globalSetup: ['test/tool/postgres-setup.ts'],
    pool: 'forks',
    // More than there are processors on a small machine: tests of the built program wait more than they work.
    maxWorkers: 3,
    projects: [
      {
        extends: true,
        test: {
          name: 'in process',
          include: ['test/{unit,contract}/**/*.test.ts'],
          testTimeout: 30_000,
          hookTimeout: 30_000,
          // No module of this program keeps anything that tests could share, so each is loaded once a worker.
          isolate: false,
        },
      },
      {
        extends: true,
        test: {
          // What depends on V8 and on Node's own servers, tried with the newest Node by `npm run test:newest`.
          name: 'newest Node',
          include: [
            'test/e2e/{query,hostile-senders}.test.ts',
            'test/unit/component/bounded-thread.test.ts',
            'test/long/export-thread.test.ts',
          ],
          testTimeout: 120_000,
          hookTimeout: 120_000,
        },
      },
      {
        extends: true,
        test: {
          // Every command of the built program as a process of its own; what somebody meets first is tried by `whole`.
          name: 'commands',
          include: ['test/e2e/**/*.test.ts'],
          exclude: ['test/e2e/{command-line,import,query,serve,start-up,steps}.test.ts'],
          testTimeout: 30_000,
          hookTimeout: 30_000,
        },
      },
      {
        extends: true,
        test: {
          name: 'whole',
          include: [
            'test/integration/**/*.test.ts',
            'test/e2e/{command-line,import,query,serve,start-up,steps}.test.ts',
          ],
          testTimeout: 30_000,
          hookTimeout: 30_000,
        },
      },
    ],
  },
});
