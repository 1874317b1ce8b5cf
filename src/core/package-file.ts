import { existsSync } from 'node:fs';

/**
 * A file of the package itself: its schema, a page's script, the program of a thread. The package's folder is the
 * nearest with a `package.json` above this file, which stands in `src/` or, bundled, in `dist/`.
 * @param path from the package's folder, for example `proto/` or `dist/exporter-thread.js`
 * @throws Error where this file stands in no package
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
