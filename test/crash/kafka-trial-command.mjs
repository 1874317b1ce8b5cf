// npm run trial:kafka -- [--runs 200] [--seconds 300] [--corpus big-build] [--seed NUMBER]: many large real runs at once over Kafka, and everything that may go wrong.
// --corpus names samples with commas between them, or folders of OTLP bodies (they have a slash).
import { spawnSync } from 'node:child_process';
import { parseArgs } from 'node:util';

const { values } = parseArgs({
  options: {
    runs: { type: 'string', default: process.env.RUNS ?? '200' },
    seconds: { type: 'string', default: '300' },
    corpus: { type: 'string', default: process.env.CORPUS ?? 'big-build' },
    seed: { type: 'string' },
  },
});
const env = { ...process.env, RUNS: values.runs, CORPUS: values.corpus, TRIAL_SECONDS: values.seconds };
if (values.seed !== undefined) env.SEED = values.seed;
const vitest = [
  'node_modules/vitest/vitest.mjs',
  'run',
  '--project=peers',
  'several-processes',
  '-t',
  'receivers in front',
];
const { status } = spawnSync(process.execPath, vitest, { stdio: 'inherit', env });
process.exitCode = status ?? 1;
