import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

/**
 * Returns the URL of a file of this package: its schema, a page's script, a thread's program. The package's folder is the nearest with a `package.json` above this file, which is in `src/` or,
 * bundled, in `dist/`.
 * @param path from the package's folder, for example `proto/` or `dist/exporter-thread.js`
 * @throws Error if this file is in no package
 */
export function packageFile(path: string): URL {
  let folder = new URL('.', import.meta.url);
  while (!existsSync(new URL('package.json', folder))) {
    const above = new URL('..', folder);
    if (above.href === folder.href) throw new Error('files of the run-bridge package are missing; reinstall it');
    folder = above;
  }
  return new URL(path, folder);
}

/** The package's version, from its `package.json`. @throws Error if it contains none */
export function packageVersion(packageDir: string): string {
  const path = join(packageDir, 'package.json');
  const manifest: unknown = JSON.parse(readFileSync(path, 'utf8'));
  if (typeof manifest === 'object' && manifest !== null && 'version' in manifest) {
    if (typeof manifest.version === 'string') return manifest.version;
  }
  throw new Error(`${path} contains no version; reinstall run-bridge`);
}
