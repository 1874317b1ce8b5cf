import { readFileSync } from 'node:fs';
import { join } from 'node:path';

/** The package's version, from its `package.json`. @throws Error if it contains none */
export function packageVersion(packageDir: string): string {
  const path = join(packageDir, 'package.json');
  const manifest: unknown = JSON.parse(readFileSync(path, 'utf8'));
  if (typeof manifest === 'object' && manifest !== null && 'version' in manifest) {
    if (typeof manifest.version === 'string') return manifest.version;
  }
  throw new Error(`${path} contains no version; reinstall run-bridge`);
}
