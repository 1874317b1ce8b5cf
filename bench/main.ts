// npm run bench NAME -- OPTIONS: runs one of these; without a name it says what each measures. README.md beside this file has their options.

/** What each measures, and its script, which reads the options when it is loaded. */
const BENCHES: Readonly<Record<string, readonly [what: string, load: () => Promise<unknown>]>> = {
  'bad-tokens': ['how long answers to bad tokens take', () => import('./bad-tokens.js')],
  collector: ['against the OpenTelemetry Collector on copies of real runs; needs Go', () => import('./collector.js')],
  convert: ['convert against DuckDB', () => import('./convert.js')],
  exec: ['what exec costs the real engine', () => import('./exec.js')],
  'export-path': ['an export from lines of a record log to bodies of requests', () => import('./export-path.js')],
  guard: ['a short run against the figures that were saved; needs Go', () => import('./guard.js')],
  'hostile-bodies': ['how long hostile requests keep others waiting', () => import('./hostile-bodies.js')],
  kafka: ['receivers and builders with a real Kafka; needs Go and Java', () => import('./kafka.js')],
  'list-runs': ['lists of 100,000 runs', () => import('./list-runs.js')],
  'live-runs': ['few quick runs and many slow ones', () => import('./live-runs.js')],
  memory: ['resident memory over 20 million spans', () => import('./memory.js')],
  pages: ['pages with 10,000 runs', () => import('./pages.js')],
  'start-up': ['from the start to the answer of /readyz', () => import('./start-up.js')],
  walk: ['which files run for one span, webhook, answer or page', () => import('./walk.js')],
  webhooks: ['deliveries of webhooks', () => import('./webhooks.js')],
};

const [name = ''] = process.argv.splice(2, 1);
const bench = BENCHES[name];
if (bench === undefined) {
  console.error('usage: npm run bench NAME -- OPTIONS\n');
  for (const [known, [what]] of Object.entries(BENCHES)) console.error(`${known.padEnd(16)}${what}`);
  process.exitCode = 2;
} else {
  await bench[1]();
}
