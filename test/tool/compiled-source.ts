import { mkdirSync, mkdtempSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build } from 'rolldown';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));

/**
 * Present sources, and what they need, as JavaScript, for tests that run a part of them in a process of its own: a file
 * for each. Lies inside `node_modules`, so that packages are found; the caller removes it.
 * @param entries from `src/`, for example `files/convert-file`
 * @returns the folder that stands for `src`
 */
export async function compileSource(...entries: readonly string[]): Promise<string> {
  const cache = join(ROOT, 'node_modules', '.cache');
  mkdirSync(cache, { recursive: true });
  const folder = mkdtempSync(join(cache, 'compiled-'));
  await build({
    cwd: ROOT,
    input: Object.fromEntries(entries.map((entry) => [entry, `src/${entry}.ts`])),
    platform: 'node',
    external: /^[^./]/,
    output: { dir: folder, format: 'esm', preserveModules: true, preserveModulesRoot: 'src', minify: false },
    logLevel: 'warn',
  });
  return folder;
}
