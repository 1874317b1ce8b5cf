// Compiles the kernel to dist/, unless it was compiled after its source last changed: the compiler takes seconds to load.
import { readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';

const root = join(import.meta.dirname, '..');
const compiled = join(root, 'dist/decode/wire/span-kernel.wasm');
const changed = (path) => statSync(path, { throwIfNoEntry: false })?.mtimeMs ?? 0;

const sources = readdirSync(join(root, 'kernel/assembly')).map((name) => join(root, 'kernel/assembly', name));
const settings = ['kernel/asconfig.json', 'package-lock.json'].map((name) => join(root, name));
if (Math.max(...[...sources, ...settings].map(changed)) > changed(compiled)) {
  process.chdir(root);
  const { default: compiler } = await import('assemblyscript/asc');
  const { error } = await compiler.main(['--config', 'kernel/asconfig.json'], {
    stdout: process.stdout,
    stderr: process.stderr,
  });
  if (error !== null) process.exitCode = 1;
}
