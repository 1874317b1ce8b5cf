import { defineConfig } from 'vitest/config';

/**
 * Tests of the built program that take long: faults of disks, destinations and threads, clocks that jump, large files, commands that are cut off, retention, a state made anew; and
 * the properties that `npm test` tries with few cases, with all of them, and what it tries with the smaller of the large samples alone, with both.
 */
export default defineConfig({
  test: {
    globalSetup: ['test/tool/postgres-setup.ts'],
    include: [
      'test/long/**/*.test.ts',
      'test/unit/decode/wire/wire-decoder.test.ts',
      'test/integration/decode-samples.test.ts',
      'test/unit/exporter/lines/{random-lines,samples}.test.ts',
      'test/unit/otlp/{json,protobuf}-codec.test.ts',
      'test/unit/parquet/{line-rows.property,encode-stretch,parquet-writer,record-from-row,round-trip.property}.test.ts',
    ],
    env: { PROPERTY_RUNS: 'all' },
    testTimeout: 60_000,
    hookTimeout: 30_000,
    pool: 'forks',
    maxWorkers: 2,
  },
});
