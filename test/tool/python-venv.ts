import { execFileSync } from 'node:child_process';
import { existsSync, readdirSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { cacheFolder, installIntoCache } from './cache-folder.js';

/** Arguments: the folder, the Python that it is made from, packages. */
const MAKE_VENV = `set -e
folder=$1 base=$2; shift 2
[ ! -d "$folder/ready" ] || exit 0
rm -rf "$folder"
"$base" -m venv "$folder"
"$folder/bin/python" -m pip --quiet --disable-pip-version-check install "$@"
mkdir "$folder/ready"`;

/**
 * A Python with these packages, installed once into the cache.
 * @param base the Python that it is made from
 * @returns the path of its interpreter
 */
export function pythonWith(name: string, packages: readonly string[], base = 'python3'): string {
  const folder = join(cacheFolder(), `venv-${name}`);
  if (!existsSync(join(folder, 'ready')))
    installIntoCache(['bash', '-c', MAKE_VENV, 'make-venv', folder, base, ...packages]);
  return join(folder, 'bin', 'python');
}

/**
 * A Python of one of these versions, such as `3.13`, that can make environments: the first of them on the path, else among
 * pyenv's. `undefined` where there is none.
 */
export function findPython(versions: readonly string[]): string | undefined {
  const pyenv = join(process.env.PYENV_ROOT ?? join(homedir(), '.pyenv'), 'versions');
  const installed = existsSync(pyenv) ? readdirSync(pyenv).toSorted() : [];
  const candidates = [
    ...['python3', ...versions.map((version) => `python${version}`)],
    ...versions
      .flatMap((version) => installed.filter((one) => one.startsWith(`${version}.`)))
      .map((one) => join(pyenv, one, 'bin', 'python3')),
  ];
  return candidates.find((python) => versions.includes(versionOf(python) ?? ''));
}

/** A name on the path may be a launcher of pyenv's that runs nothing: it is asked. */
function versionOf(python: string): string | undefined {
  const code = 'import ensurepip, sys, venv; print("%d.%d" % sys.version_info[:2])';
  try {
    return execFileSync(python, ['-c', code], { stdio: ['ignore', 'pipe', 'ignore'] })
      .toString()
      .trim();
  } catch {
    return undefined;
  }
}
