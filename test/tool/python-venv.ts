import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { cacheFolder } from './cache-folder.js';

/**
 * A Python with these packages, installed once into the cache.
 * @returns the path of its interpreter
 */
export function pythonWith(name: string, packages: readonly string[]): string {
  const folder = join(cacheFolder(), `venv-${name}`);
  const python = join(folder, 'bin', 'python');
  const ready = join(folder, 'ready');
  if (!existsSync(ready)) {
    rmSync(folder, { recursive: true, force: true });
    mkdirSync(cacheFolder(), { recursive: true });
    execFileSync('python3', ['-m', 'venv', folder], { stdio: 'inherit' });
    const pip = ['-m', 'pip', '--quiet', '--disable-pip-version-check', 'install', ...packages];
    execFileSync(python, pip, { stdio: ['ignore', 'inherit', 'inherit'] });
    mkdirSync(`${ready}.new`);
    renameSync(`${ready}.new`, ready);
  }
  return python;
}
