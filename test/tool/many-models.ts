import { mkdirSync, mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** Models that each read one before them. */
const EVERY = 7;

/** What each model of a project has the warehouse do; nothing that takes time where it is left out. */
export interface ModelWork {
  /** Rows that it sums up: DuckDB keeps all processors busy with them. */
  readonly rowCount?: number;
  /** How long it waits, in milliseconds: as for a warehouse that is elsewhere, which takes no processor here. */
  readonly waitMs?: number;
  /** Whether it has two tests. Default: none. */
  readonly isTested?: boolean;
}

/**
 * Writes a project of many small models on DuckDB into a temporary folder: more spans in less time than the engine's own
 * queue of 2,048 holds when answers are slow.
 * @returns the folder
 */
export function generateProject(
  modelCount: number,
  { rowCount = 0, waitMs = 0, isTested = false }: ModelWork = {},
): string {
  const folder = mkdtempSync(join(tmpdir(), 'run-bridge-models-'));
  mkdirSync(join(folder, 'models'));
  const write = (name: string, text: string) => writeFileSync(join(folder, name), text);
  write('dbt_project.yml', 'name: many\nversion: "1.0.0"\nprofile: many\nmodels:\n  many:\n    +materialized: view\n');
  write(
    'profiles.yml',
    'many:\n  target: duck\n  outputs:\n    duck:\n      type: duckdb\n      path: many.duckdb\n      schema: main\n      threads: 4\n',
  );
  const sum = `(select sum(hash(i) % 1000) as total from range(${rowCount}) t(i))`;
  for (let index = 0; index < modelCount; index++) {
    const from = index % EVERY === 0 ? 'select 1 as id' : `select id + 1 as id from {{ ref('m_${index - 1}') }}`;
    const columns = `m.id, ${waitMs === 0 ? 'null' : `sleep_ms(${waitMs})`} as waited, w.total`;
    const work = `select ${columns} from (${from}) m, ${sum} w`;
    const isBusy = rowCount > 0 || waitMs > 0;
    write(join('models', `m_${index}.sql`), `${isBusy ? `{{ config(materialized='table') }}\n${work}` : from}\n`);
  }
  if (isTested) {
    const columns = [{ name: 'id', data_tests: ['unique', 'not_null'] }];
    const models = Array.from({ length: modelCount }, (_, index) => ({ name: `m_${index}`, columns }));
    // YAML has JSON in it.
    write(join('models', 'schema.yml'), JSON.stringify({ version: 2, models }));
  }
  return folder;
}
