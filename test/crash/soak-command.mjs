// npm run soak -- --minutes 30 [--rate SPANS-A-SECOND] [--seed NUMBER]: the soak test for as long as you like.
import { spawnSync } from 'node:child_process';
import { parseArgs } from 'node:util';

const { values } = parseArgs({
  options: {
    minutes: { type: 'string', default: '30' },
    rate: { type: 'string', default: '2000' },
    seed: { type: 'string' },
  },
});
const env = { ...process.env, SOAK_MINUTES: values.minutes, SOAK_RATE: values.rate };
if (values.seed !== undefined) env.SOAK_SEED = values.seed;
const vitest = ['node_modules/vitest/vitest.mjs', 'run', '--project=crash', 'test/crash/soak.test.ts'];
const { status } = spawnSync(process.execPath, vitest, { stdio: 'inherit', env });
process.exitCode = status ?? 1;
