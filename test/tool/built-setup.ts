import { execFileSync } from 'node:child_process';

/** Builds the program that tests start, where its sources have changed since: once for all that is tested together. */
export default function setup(): void {
  execFileSync(process.execPath, ['build/bundle.mjs', '--if-changed'], { stdio: 'inherit' });
}
