import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { readEngineSwitches } from '../../../src/exec/command-environment.js';
import { findTargetFolder } from '../../../src/exec/step-artifacts.js';

let dir: string;
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'run-bridge-project-'));
  mkdirSync(join(dir, 'models'));
  writeFileSync(join(dir, 'dbt_project.yml'), 'name: shop\n');
});
afterEach(() => rmSync(dir, { recursive: true }));

const find = (words = 'dbt build', environment = {}, workingDir = dir) =>
  findTargetFolder(readEngineSwitches(words.split(' '), environment), workingDir);

it('is target in the project, wherever in it the command is run', async () => {
  expect(await find('dbt build', {}, join(dir, 'models'))).toBe(join(dir, 'target'));
});

it('is what the command line says, then the environment, then the project, each meant from the project', async () => {
  writeFileSync(join(dir, 'dbt_project.yml'), 'name: shop\ntarget-path: "of project"\n');
  const environment = { DBT_TARGET_PATH: 'of/environment' };
  expect(await find('dbt build --target-path of/flag', environment)).toBe(join(dir, 'of/flag'));
  expect(await find('dbt build --target-path=of/flag', environment)).toBe(join(dir, 'of/flag'));
  expect(await find('dbt build', environment, join(dir, 'models'))).toBe(join(dir, 'of/environment'));
  expect(await find()).toBe(join(dir, 'of project'));
  expect(await find('dbt build --target-path /elsewhere')).toBe('/elsewhere');
});

it("stands in the project that the command names, not in the working folder's", async () => {
  expect(await find(`dbt build --project-dir ${dir}`, {}, tmpdir())).toBe(join(dir, 'target'));
  expect(await find('dbt build', { DBT_PROJECT_DIR: dir }, tmpdir())).toBe(join(dir, 'target'));
});

it('is none without a project: the target of another tool is left alone', async () => {
  rmSync(join(dir, 'dbt_project.yml'));
  expect(await find('cargo build')).toBeUndefined();
});

it('is not guessed where the project leaves it to a template', async () => {
  writeFileSync(join(dir, 'dbt_project.yml'), `target-path: "{{ env_var('TARGET') }}"\n`);
  expect(await find()).toBeUndefined();
});

it('is target where the project cannot be read as YAML, as the engine says itself', async () => {
  writeFileSync(join(dir, 'dbt_project.yml'), 'target-path: [\n');
  expect(await find()).toBe(join(dir, 'target'));
});
