// npm run docs: writes what the program's own tables say into the pages of docs/. A test holds the pages to them.
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { rolldown } from 'rolldown';
import { globSync } from 'tinyglobby';

const root = join(import.meta.dirname, '..');
const dir = join(root, 'node_modules/.cache/docs');
const bundle = await rolldown({
  cwd: root,
  input: 'build/reference.ts',
  platform: 'node',
  tsconfig: 'tsconfig.json',
  external: [/^@?libsql(\/|$)/, /^@duckdb\//, /^pg-(native|cloudflare)$/],
});
await bundle.write({ dir, format: 'esm', entryFileNames: '[name].mjs', chunkFileNames: 'chunk/[name].mjs' });
const { referenceBlocks, reportSchema, withBlocks } = await import(join(dir, 'reference.mjs'));
const blocks = referenceBlocks();
for (const path of globSync('docs/**/*.md', { cwd: root, absolute: true })) {
  const page = readFileSync(path, 'utf8');
  const made = withBlocks(page, blocks);
  if (made !== page) writeFileSync(path, made);
}
writeFileSync(join(root, 'docs/reference/report.schema.json'), `${JSON.stringify(reportSchema(), null, 2)}\n`);
