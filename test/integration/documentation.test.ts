import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { DuckDBInstance } from '@duckdb/node-api';
import { describe, expect, test } from 'vitest';
import { grafanaDashboards, referenceBlocks, withBlocks } from '../../build/reference.js';
import { METRICS } from '../../src/metric/metrics.js';

const root = fileURLToPath(new URL('../../', import.meta.url));
const read = (path: string) => readFileSync(join(root, path), 'utf8');
const pages = [
  ...readdirSync(root).filter((name) => name.endsWith('.md')),
  ...readdirSync(join(root, 'docs'), { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.md'))
    .map((name) => join('docs', name)),
];

const blocks = referenceBlocks();

/** What a link may name of a page, as GitHub makes it of the headings. */
function anchorsOf(markdown: string): readonly string[] {
  const prose = markdown.replaceAll(/^```[\s\S]*?^```/gm, '');
  return Array.from(prose.matchAll(/^#+ (.*)$/gm), ([, heading = '']) =>
    heading
      .replaceAll(/\[([^\]]*)\]\([^)]*\)/g, '$1')
      .toLowerCase()
      .replaceAll(/[^\p{L}\p{N}_ -]/gu, '')
      .replaceAll(' ', '-'),
  );
}

describe('documentation', () => {
  test.each(pages)(
    '%s says of settings, commands, events, metrics and routes what the program does: else run npm run docs',
    (page) => {
      expect(withBlocks(read(page), blocks)).toBe(read(page));
    },
  );

  test('has dashboards for Grafana of the metrics that there are: else run npm run docs', () => {
    const folder = 'deploy/grafana/dashboards';
    const files = readdirSync(join(root, folder)).map((name) => [name, read(join(folder, name))]);
    expect(Object.fromEntries(files)).toEqual(grafanaDashboards());
  });

  test('has a place for everything that is made of tables, and names no metric that there is not', () => {
    const all = [...pages, 'deploy/prometheus/alerts.yaml'].map(read).join('\n');
    for (const name of Object.keys(blocks)) expect(all).toContain(`<!-- npm run docs makes: ${name} -->`);
    for (const [name] of all.matchAll(/run_bridge_[a-z]+_\w+/g)) expect(Object.keys(METRICS)).toContain(name);
    for (const [, name] of all.matchAll(/(cicd_pipeline_run_[a-z]+(_seconds)?)(?=_bucket|_count|_sum|\W)/g))
      expect([...Object.keys(METRICS), 'cicd_pipeline_run_state']).toContain(name);
  });

  test.each(pages)('%s links to pages and headings that are there', (page) => {
    for (const [, path = '', heading] of read(page).matchAll(/\]\((?!https?:)([^)#\s]*)(?:#([^)]*))?\)/g)) {
      if (path.includes('…')) continue;
      const target = path === '' ? page : join(dirname(page), path);
      expect(existsSync(join(root, target)), `${page} → ${path}`).toBe(true);
      if (heading !== undefined) expect(anchorsOf(read(target)), `${page} → ${path}`).toContain(heading);
    }
  });

  test('names only source files that are there', () => {
    const decisions = join('docs', 'adr');
    for (const page of pages.filter((path) => !path.startsWith(decisions) && path !== 'CHANGELOG.md')) {
      for (const [, path = ''] of read(page).matchAll(/(?<![\w./-])([a-z-]+\/[a-z\d/.-]+\.tsx?)\b/g)) {
        const isThere = existsSync(join(root, path)) || existsSync(join(root, 'src', path));
        expect(isThere, `${page} → ${path}`).toBe(true);
      }
    }
  });

  test('names only npm scripts that are there', () => {
    const { scripts } = JSON.parse(read('package.json'));
    for (const page of pages) {
      for (const [, script] of read(page).matchAll(/npm run ([a-z:-]+)/g))
        expect(scripts).toHaveProperty([script ?? '']);
    }
  });

  test('shows a query of Parquet files that DuckDB answers', async () => {
    const query = /duckdb -c "([^"]+)"/.exec(read('docs/get-started.md'))?.[1] ?? '';
    const file = join(root, 'test/fixture/samples/build-mixed/otel.parquet');
    const connection = await (await DuckDBInstance.create()).connect();
    const answer = await connection.runAndReadAll(query.replace(/'~[^']+'/, `'${file}'`));
    expect(answer.getRows()[0]?.slice(0, 2)).toEqual(['model.shop.broken', 'NODE_OUTCOME_ERROR']);
  });

  test("says in the demo's folder the run that the samples hold", () => {
    const sample = join(root, 'test/fixture/samples/build-mixed/otlp');
    const demo = join(root, 'demo');
    expect(readdirSync(demo)).toEqual(readdirSync(sample));
    for (const name of readdirSync(demo)) {
      expect(readFileSync(join(demo, name)).equals(readFileSync(join(sample, name)))).toBe(true);
    }
  });
});
