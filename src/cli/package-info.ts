import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { z } from 'zod';

const MANIFEST = z.object({ version: z.string(), engines: z.object({ node: z.string() }) });

/** The package's version, from its `package.json`. */
export function packageVersion(packageDir: string): string {
  return MANIFEST.parse(JSON.parse(readFileSync(join(packageDir, 'package.json'), 'utf8'))).version;
}
