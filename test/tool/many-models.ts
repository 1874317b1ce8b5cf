import { mkdirSync, mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** Models that each read one before them. */
const EVERY = 7;

/**
 * Writes a project of many small models on DuckDB into a temporary folder: more spans in less time than the engine's own
 * queue of 2,048 holds when answers are slow.
 * @param rowCount what each model sums up, for models that take their time; 0 for none
 * @param warehouseThreads threads that DuckDB has, and models that are built at a time; 0 for 4 models and as many threads as DuckDB likes
 * @returns the folder
 */
export function generateProject(modelCount: number, rowCount = 0, warehouseThreads = 0): string {
  const folder = mkdtempSync(join(tmpdir(), 'run-bridge-models-'));
  mkdirSync(join(folder, 'models'));
  const write = (name: string, text: string) => writeFileSync(join(folder, name), text);
  write('dbt_project.yml', 'name: many\nversion: "1.0.0"\nprofile: many\nmodels:\n  many:\n    +materialized: view\n');
  const threads =
    warehouseThreads === 0
      ? 'threads: 4'
      : `threads: ${warehouseThreads}\n      settings: { threads: ${warehouseThreads} }`;
  write(
    'profiles.yml',
    `many:\n  target: duck\n  outputs:\n    duck:\n      type: duckdb\n      path: many.duckdb\n      schema: main\n      ${threads}\n`,
  );
  for (let index = 0; index < modelCount; index++) {
    const from = index % EVERY === 0 ? 'select 1 as id' : `select id + 1 as id from {{ ref('m_${index - 1}') }}`;
    const work = `select m.id, w.total from (${from}) m, (select sum(hash(i) % 1000) as total from range(${rowCount}) t(i)) w`;
    const model = rowCount === 0 ? from : `{{ config(materialized='table') }}\n${work}`;
    write(join('models', `m_${index}.sql`), `${model}\n`);
  }
  return folder;
}
