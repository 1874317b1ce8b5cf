// npm run fuzz -- [--bodies N] [--seed N] [--first N]: see test/fuzz/README.md.
import { spawnSync } from 'node:child_process';
import { randomInt } from 'node:crypto';
import { parseArgs } from 'node:util';

const number = { type: 'string' };
const { values } = parseArgs({ options: { bodies: number, seed: number, first: number } });
const seed = values.seed ?? String(randomInt(2 ** 31));
console.log(`seed ${seed}`);
const { status } = spawnSync('npx', ['vitest', 'run', '--project=fuzz'], {
  stdio: 'inherit',
  env: { ...process.env, FUZZ_BODIES: values.bodies ?? '1000000', FUZZ_SEED: seed, FUZZ_FIRST: values.first ?? '0' },
});
process.exitCode = status ?? 1;
