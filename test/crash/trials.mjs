// npm run trials -- [--minutes 60] [--only NAME,…] [--seed NUMBER]: what is random or long, for as long as it is told, before a release and each
// night. Each trial gets an equal share of the time, and the seed, which is printed: --seed and --only with the same --minutes try the same
// again. Ends with 1 when one failed; what failed becomes a test with fixed steps.
// Of several processes: RUNS=200 CORPUS=big-build npm run trials -- --only processes --minutes 20 sends so many of a real large run at once.
import { spawnSync } from 'node:child_process';
import { randomInt } from 'node:crypto';
import { join } from 'node:path';
import { parseArgs } from 'node:util';

/** What each trial runs: arguments of Vitest. */
const TRIALS = {
  crash: ['--project=crash', 'test/crash/crash.test.ts'],
  webhooks: ['--project=crash', 'test/crash/webhooks.test.ts'],
  schema: ['--project=crash', 'test/crash/schema-kills.test.ts'],
  soak: ['--project=crash', 'test/crash/soak.test.ts'],
  processes: ['--project=peers', 'test/peers/several-processes.test.ts'],
  dispatchers: ['--project=peers', 'test/peers/several-dispatchers.test.ts'],
  fuzz: ['--project=fuzz'],
  properties: ['--project=long', '--project=engine', 'property'],
  limits: ['--project=limits', '--project=commands', 'start-up', 'exec-busy', 'hostile-senders', 'grpc'],
  newest: ['--project=whole', '--project=in process', '--project=commands', '--project=long'],
};

const { values } = parseArgs({
  options: {
    minutes: { type: 'string', default: '60' },
    only: { type: 'string', default: Object.keys(TRIALS).join(',') },
    seed: { type: 'string', default: String(randomInt(2 ** 31)) },
  },
});
const names = values.only.split(',');
const unknown = names.filter((name) => !(name in TRIALS));
const minutes = Number(values.minutes);
if (unknown.length > 0 || !(minutes > 0) || !Number.isInteger(Number(values.seed))) {
  console.error(`usage: npm run trials -- [--minutes N] [--only ${Object.keys(TRIALS).join(',')}] [--seed N]`);
  process.exit(2);
}
const seconds = Math.round((minutes * 60) / names.length);
const results = [];
for (const name of names) {
  const again = `npm run trials -- --only ${name} --minutes ${minutes / names.length} --seed ${values.seed}`;
  console.log(`\n── ${name}: ${again}`);
  const startedMs = performance.now();
  const env = {
    ...process.env,
    TRIAL_SEED: values.seed,
    TRIAL_SECONDS: String(seconds),
    PROPERTY_SEED: values.seed,
    PROPERTY_RUNS: 'all',
  };
  const node = name === 'newest' ? [join('test', 'tool', 'newest-node.mjs'), 'node'] : [];
  const vitest = [...node, join('node_modules', 'vitest', 'vitest.mjs'), 'run', ...TRIALS[name]];
  const { status } = spawnSync(process.execPath, vitest, { stdio: 'inherit', env });
  results.push({ name, again, status, took: Math.round((performance.now() - startedMs) / 1_000) });
}
console.log('');
for (const { name, again, status, took } of results) {
  console.log(`${status === 0 ? 'passed' : 'FAILED'}  ${name.padEnd(12)} ${String(took).padStart(5)} s  ${again}`);
}
process.exitCode = results.every(({ status }) => status === 0) ? 0 : 1;
