/** Settings that there were, and what to use in their place, as the end of a sentence. */
const REMOVED: Readonly<Record<string, string>> = {
  'platform-max-file': 'leave it out: a file of a hosted run may have 512 MiB',
  ...Object.fromEntries(
    ['endpoint', 'region', 'path-style'].map((name) => [
      `artifacts-${name}`,
      `give it with artifacts, such as s3://my-bucket?endpoint=https://minio.example.com:9000&region=eu-central-1&path-style=on`,
    ]),
  ),
  ...Object.fromEntries(
    ['telemetry', 'artifacts', 'deliveries'].flatMap((kind) =>
      ['age', 'size'].map((limit) => [
        `retain-${kind}-${limit}`,
        `use retain-${kind}, such as 90d, 50GiB or 90d,50GiB`,
      ]),
    ),
  ),
  'mapping.log-records': 'give destinations that are to have no log records "signals: traces"',
  ...inPlaceOf('events', ['span-events']),
  ...inPlaceOf('verdicts', ['test-errors', 'node-errors', 'stale-source-errors', 'warning-events']),
  ...inPlaceOf('verdicts', ['true-cancellations', 'skip-links']),
  ...inPlaceOf('attributes', ['lifted-attributes', 'database-attributes', 'query-time']),
  ...inPlaceOf('names', ['stable-names']),
  ...inPlaceOf('gaps', ['unfinished-spans', 'synthetic-invocations', 'synthetic-parents']),
};

function inPlaceOf(now: string, before: readonly string[]): Readonly<Record<string, string>> {
  return Object.fromEntries(before.map((name) => [`mapping.${name}`, `use mapping.${now}`]));
}

/**
 * What is wrong with a name that was a setting once; `undefined` for other names.
 * @param key of the file, such as `retain-telemetry-age` or `mapping.test-errors`
 * @param shown how it stands where it was found, such as `RUN_BRIDGE_RETAIN_TELEMETRY_AGE`
 */
export function removedProblem(key: string, shown = key): string | undefined {
  return Object.hasOwn(REMOVED, key) ? `${shown} is not a setting any more; ${REMOVED[key]}` : undefined;
}
