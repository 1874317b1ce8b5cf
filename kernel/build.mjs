// Compiles the kernels to dist/, those whose source has changed since: the compiler takes seconds to load.
import { readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';

const root = join(import.meta.dirname, '..');
const KERNELS = [
  { config: 'kernel/asconfig.json', compiled: 'dist/span-kernel.wasm' },
  { config: 'kernel/asconfig.lines.json', compiled: 'dist/line-kernel.wasm' },
];
const changed = (path) => statSync(path, { throwIfNoEntry: false })?.mtimeMs ?? 0;

const names = readdirSync(join(root, 'kernel/assembly'), { recursive: true });
const sources = names.map((name) => join(root, 'kernel/assembly', name));
process.chdir(root);
for (const { config, compiled } of KERNELS) {
  const settings = [config, 'package-lock.json'].map((name) => join(root, name));
  if (Math.max(...[...sources, ...settings].map(changed)) <= changed(join(root, compiled))) continue;
  const { default: compiler } = await import('assemblyscript/asc');
  const { error } = await compiler.main(['--config', config], { stdout: process.stdout, stderr: process.stderr });
  if (error !== null) process.exitCode = 1;
}
