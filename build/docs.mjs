// npm run docs: writes what the program's own tables say into the pages of docs/, and dashboards of its metrics. A test holds them to the tables.
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
const { grafanaDashboards, referenceBlocks, reportSchema, withBlocks } = await import(join(dir, 'reference.mjs'));
const blocks = referenceBlocks();
for (const path of globSync('docs/**/*.md', { cwd: root, absolute: true })) {
  const page = readFileSync(path, 'utf8');
  const made = withBlocks(page, blocks);
  if (made !== page) writeFileSync(path, made);
}
for (const [name, text] of Object.entries(grafanaDashboards())) {
  writeFileSync(join(root, 'deploy/grafana/dashboards', name), text);
}
writeFileSync(join(root, 'docs/reference/report.schema.json'), `${JSON.stringify(reportSchema(), null, 2)}\n`);
