import {
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const require = createRequire(import.meta.url);

/**
 * The present sources as JavaScript, for tests that run a part of them in a process of its own: those of the last build
 * where they are not older, else compiled here. Lies inside `node_modules`, so that packages are found; the caller removes it.
 * @returns the folder that stands for `src`
 */
export function compileSource(): string {
  const cache = join(ROOT, 'node_modules', '.cache');
  mkdirSync(cache, { recursive: true });
  // The schema stands beside the sources, as it does beside `dist`.
  if (!existsSync(join(cache, 'proto'))) symlinkSync(join(ROOT, 'proto'), join(cache, 'proto'));
  const folder = mkdtempSync(join(cache, 'compiled-'));
  for (const entry of readdirSync(join(ROOT, 'src'), { recursive: true, encoding: 'utf8' })) {
    if (!entry.endsWith('.ts')) continue;
    const source = join(ROOT, 'src', entry);
    const name = entry.replace(/\.ts$/, '.js');
    const built = join(ROOT, 'dist', name);
    const target = join(folder, name);
    mkdirSync(dirname(target), { recursive: true });
    if (changedMs(built) > changedMs(source)) copyFileSync(built, target);
    else writeFileSync(target, compile(source));
  }
  return folder;
}

function compile(source: string): string {
  const ts: typeof import('typescript') = require('typescript');
  return ts.transpileModule(readFileSync(source, 'utf8'), {
    compilerOptions: { target: ts.ScriptTarget.ES2023, module: ts.ModuleKind.ESNext },
  }).outputText;
}

/** 0 where there is no such file. */
function changedMs(path: string): number {
  return statSync(path, { throwIfNoEntry: false })?.mtimeMs ?? 0;
}
