import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import ts from 'typescript';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));

/**
 * The present sources as JavaScript, for tests that run a part of them in a process of its own. Lies inside
 * `node_modules`, so that packages are found; the caller removes it.
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
    const { outputText } = ts.transpileModule(readFileSync(join(ROOT, 'src', entry), 'utf8'), {
      compilerOptions: { target: ts.ScriptTarget.ES2023, module: ts.ModuleKind.ESNext },
    });
    const target = join(folder, entry.replace(/\.ts$/, '.js'));
    mkdirSync(dirname(target), { recursive: true });
    writeFileSync(target, outputText);
  }
  return folder;
}
