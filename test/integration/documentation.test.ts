import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { DuckDBInstance } from '@duckdb/node-api';
import { describe, expect, test } from 'vitest';
import { environmentName, SETTING_KEYS, SETTINGS } from '../../src/config/settings.js';
import { MAPPING_SWITCHES } from '../../src/exporter/mapping/mapping-options.js';
import type { MetricDefinition } from '../../src/metric/metric-definition.js';
import { METRICS } from '../../src/metric/metrics.js';

const root = fileURLToPath(new URL('../../', import.meta.url));
const read = (path: string) => readFileSync(join(root, path), 'utf8');
const pages = [
  ...readdirSync(root).filter((name) => name.endsWith('.md')),
  ...readdirSync(join(root, 'docs'), { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.md'))
    .map((name) => join('docs', name)),
];

describe('documentation', () => {
  test('lists every setting with its variable, default and meaning', () => {
    for (const key of SETTING_KEYS) {
      const { summary, defaultText } = SETTINGS[key];
      const row = `| \`${key}\` | \`${environmentName(key)}\` | ${defaultText === null ? '' : `\`${defaultText}\``} | ${summary} |`;
      expect(read('docs/configuration.md')).toContain(row);
    }
  });

  test('lists every mapping switch', () => {
    for (const [name, what] of Object.entries(MAPPING_SWITCHES)) {
      expect(read('docs/configuration.md')).toContain(`| \`${name}\` | ${what} |`);
    }
  });

  test('lists every metric with its kind, labels and meaning, and no others', () => {
    const definitions: readonly (readonly [string, MetricDefinition])[] = Object.entries(METRICS);
    const rows = definitions.map(
      ([name, { kind, labels, help }]) =>
        `| \`${name}\` | ${kind} | ${labels.map((label) => `\`${label}\``).join(', ')} | ${help} |`,
    );
    const page = read('docs/metrics.md');
    expect(page.match(/^\| `run_bridge_.*$/gm)?.toSorted()).toEqual(rows.toSorted());
    for (const [name] of page.matchAll(/run_bridge_\w+/g)) expect(Object.keys(METRICS)).toContain(name);
  });

  test.each(pages)('%s links to pages that are there', (page) => {
    for (const [, target = ''] of read(page).matchAll(/\]\((?!https?:)([^)#]+)/g)) {
      if (target.includes('…')) continue;
      expect(existsSync(join(root, dirname(page), target)), `${page} → ${target}`).toBe(true);
    }
  });

  test('names only npm scripts that are there', () => {
    const { scripts } = JSON.parse(read('package.json'));
    for (const page of ['README.md', 'CONTRIBUTING.md']) {
      for (const [, script] of read(page).matchAll(/npm run ([a-z:-]+)/g))
        expect(scripts).toHaveProperty([script ?? '']);
    }
  });

  test('shows a query of Parquet files that DuckDB answers', async () => {
    const query = /duckdb -c "([^"]+)"/.exec(read('README.md'))?.[1] ?? '';
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
