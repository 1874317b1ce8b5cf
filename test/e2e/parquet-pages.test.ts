import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DuckDBInstance } from '@duckdb/node-api';
import { afterAll, beforeAll, expect, test } from 'vitest';

const SAMPLE = 'test/fixture/samples/build-mixed/otel.parquet';

let folder: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'run-bridge-pages-'));
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** Has DuckDB, another writer than the engine's and ours, write a file. */
async function written(name: string, rows: string, options: string): Promise<string> {
  const path = join(folder, `${name}.parquet`);
  const connection = await (await DuckDBInstance.create()).connect();
  await connection.run(`copy (${rows}) to '${path}' (format parquet, ${options})`);
  connection.closeSync();
  return path;
}

function converted(path: string): string {
  const out = join(folder, 'out.jsonl');
  execFileSync(process.execPath, ['dist/main.js', 'convert', path, out]);
  return readFileSync(out, 'utf8');
}

test.each(['uncompressed', 'snappy', 'gzip', 'zstd', 'brotli', 'lz4_raw'])(
  'a file with pages of %s has the same records',
  async (codec) => {
    const path = await written(codec, `from '${SAMPLE}'`, `codec '${codec}'`);
    expect(converted(path)).toBe(converted(SAMPLE));
  },
);

test('a file of pyarrow whose row group has no rows has no records', () => {
  expect(converted('test/fixture/packed/no-rows.parquet')).toBe('');
});

test('a row group whose pages are too long to hold is refused in words', async () => {
  const rows = `select sample.* from (from '${SAMPLE}' limit 100) sample, range(2000)`;
  const path = await written('long-pages', rows, 'row_group_size 200000');
  expect(() => converted(path)).toThrow(
    /side by side in a row group, too many to hold\. Write the file again with smaller row groups/,
  );
});
