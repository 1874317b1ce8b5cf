import { chmodSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Engine } from './engine.js';

const PAGE = new URL('../../docs/recipes.md', import.meta.url);
const MAIN = new URL('../../dist/main.js', import.meta.url).pathname;

/** A block of the page of recipes, by how it begins. @throws Error unless there is one such block */
export function recipe(start: string): string {
  const blocks = readFileSync(PAGE, 'utf8').matchAll(/^```\w+\n([\s\S]*?)^```$/gm);
  const found = Array.from(blocks, ([, text = '']) => text).filter((text) => text.startsWith(start));
  const [block] = found;
  if (block === undefined || found.length > 1) throw new Error(`${found.length} recipes begin with ${start}`);
  return block;
}

const SCHEMA = `
models:
  - name: stg_orders
    columns: [{ name: order_id, data_tests: [unique] }]
`;

/** Makes the engine's project one of a seed, a model and a test, which all do well. */
export function makeSmall({ project }: Engine): void {
  for (const path of ['models/marts', 'models/staging/stg_customers.sql', 'seeds/raw_customers.csv']) {
    rmSync(join(project, path), { recursive: true });
  }
  for (const folder of ['snapshots', 'tests', 'analyses']) rmSync(join(project, folder), { recursive: true });
  writeFileSync(join(project, 'models/schema.yml'), SCHEMA);
  const file = join(project, 'dbt_project.yml');
  writeFileSync(file, readFileSync(file, 'utf8').replace(/^ {4}marts:.*\n/m, ''));
}

/** Makes a folder for the PATH in which `run-bridge` is the built program. @returns the folder */
export function programFolder(parent: string): string {
  const folder = join(parent, 'bin');
  mkdirSync(folder);
  writeScript(join(folder, 'run-bridge'), `#!/bin/sh\nexec "${process.execPath}" "${MAIN}" "$@"\n`);
  return folder;
}

/** Writes a file that can be executed. */
export function writeScript(path: string, text: string): void {
  writeFileSync(path, text);
  chmodSync(path, 0o755);
}
