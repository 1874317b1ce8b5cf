import { defineConfig, type TestProjectInlineConfiguration } from 'vitest/config';

type TestOptions = NonNullable<TestProjectInlineConfiguration['test']>;

/** Starts a PostgreSQL server for those who ask for a database, once. */
const POSTGRES = ['test/tool/postgres-setup.ts'];
/** What somebody meets first of the built program: `npm test` tries it, the other commands have a project of their own. */
const FIRST_MET = 'test/e2e/{command-line,import,serve,start-up}.test.ts';
/** What `npm test` leaves to `npm run suite long`, to keep below five minutes with the installation. */
const TRIED_LATER = ['test/unit/storage/postgres-state.test.ts', 'test/integration/otlp/decode-samples.test.ts'];
/** What holds the program to limits. */
const LIMITS = ['test/crash/{start-up,exec-busy}.test.ts'];
/** Tests of the built program wait more than they work: more of them at once than a small machine has processors. */
const WORKERS = 3;
const MINUTE_MS = 60_000;
/** How long a test or a hook may take: longer than it waits for anything (test/tool/until.ts), so that it can say what it waited for. */
const PATIENCE_MS = 5 * MINUTE_MS;

/** The projects run by themselves (`npm run suite NAME`), so the order among them says nothing. */
export default defineConfig({
  test: {
    globalSetup: 'test/tool/built-setup.ts',
    projects: [
      project('in process', {
        include: ['test/{unit,contract}/**/*.test.ts'],
        exclude: TRIED_LATER,
        globalSetup: POSTGRES,
        maxWorkers: WORKERS,
        // Modules keep nothing but spare buffers and what they worked out before, so each is loaded once a worker.
        isolate: false,
      }),
      project('whole', {
        include: ['test/integration/**/*.test.ts', FIRST_MET],
        exclude: TRIED_LATER,
        globalSetup: POSTGRES,
        maxWorkers: WORKERS,
      }),
      // Every command of the built program as a process of its own.
      project('commands', {
        include: ['test/e2e/**/*.test.ts'],
        exclude: [FIRST_MET],
        globalSetup: POSTGRES,
        maxWorkers: WORKERS,
      }),
      // What depends on V8 and on Node's own servers, for the newest Node; all else runs with it as a trial.
      project('newest', {
        include: ['test/e2e/query.test.ts', 'test/unit/core/bounded-thread.test.ts'],
        globalSetup: POSTGRES,
        maxWorkers: WORKERS,
      }),
      // Tests of the built program that take long: faults of disks, destinations and threads, clocks that jump, large files, commands that are cut
      // off, retention, a state made anew; and of the properties the many cases that `npm test` leaves out.
      project('long', {
        include: ['test/long/**/*.test.ts', ...TRIED_LATER, 'test/unit/**/*.property.test.ts'],
        globalSetup: POSTGRES,
        env: { PROPERTY_RUNS: 'rest', PROPERTY_SEED: process.env.PROPERTY_SEED ?? '2' },
        maxWorkers: 2,
      }),
      // Damaged and made-up bodies against the decoders and the receiver; how many, test/fuzz/budget.ts says.
      project('fuzz', {
        include: ['test/fuzz/**/*.test.ts'],
        execArgv: ['--expose-gc'],
        maxWorkers: 1,
        testTimeout: 6 * 60 * MINUTE_MS,
      }),
      // The pages of the built program in a real browser, which the packages bring.
      project('browser', {
        include: ['test/browser/**/*.test.ts'],
        globalSetup: 'test/tool/browser-setup.ts',
        maxWorkers: 2,
      }),
      // With the real engine and Python, which are installed once (RUN_BRIDGE_CACHE).
      project('engine', {
        include: ['test/engine/**/*.test.ts'],
        maxWorkers: 2,
        hookTimeout: 15 * MINUTE_MS,
      }),
      // With other programs: Jaeger, the Collector and an S3 server, built from Go modules (minutes the first time); clients from PyPI.
      project('peers', {
        include: ['test/peers/**/*.test.ts'],
        maxWorkers: 1,
        hookTimeout: 30 * MINUTE_MS,
      }),
      // Other programs that the suites above need, built or installed into the cache while other tests run.
      project('installs', {
        include: ['test/installs/**/*.test.ts'],
        maxWorkers: 1,
        testTimeout: 30 * MINUTE_MS,
      }),
      // Limits of time and memory, and a machine that others keep busy: as a trial (`npm run trials`), for none of it is the same each time.
      project('limits', {
        include: LIMITS,
        maxWorkers: 1,
        hookTimeout: 30 * MINUTE_MS,
      }),
      // Tests that kill the built program, or let it run for long.
      project('crash', {
        include: ['test/crash/**/*.test.ts'],
        exclude: LIMITS,
        globalSetup: POSTGRES,
        maxWorkers: 1,
        hookTimeout: 30 * MINUTE_MS,
      }),
    ],
  },
});

/** @param options say how many test files run at once; projects that differ in that do not run at the same time */
function project(name: string, options: TestOptions & { readonly maxWorkers: number }): TestProjectInlineConfiguration {
  const sequence = { groupOrder: options.maxWorkers };
  const setupFiles = ['test/tool/property-seed.ts'];
  const timeouts = { testTimeout: PATIENCE_MS, hookTimeout: PATIENCE_MS };
  return { test: { name, pool: 'forks', setupFiles, ...timeouts, sequence, ...options } };
}
