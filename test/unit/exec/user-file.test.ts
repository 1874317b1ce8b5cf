import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { findUserFile } from '../../../src/exec/command-environment.js';

let dir: string;
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'run-bridge-user-file-'));
  mkdirSync(join(dir, 'models', 'deep'), { recursive: true });
  writeFileSync(join(dir, 'dbt_project.yml'), 'name: shop\n');
});
afterEach(() => rmSync(dir, { recursive: true }));

const find = (switches: Partial<Parameters<typeof findUserFile>[0]>, workingDir = dir) =>
  findUserFile(
    {
      fileName: 'otel.jsonl',
      logPath: undefined,
      projectDir: undefined,
      targetPath: undefined,
      hasOwnTrace: false,
      ...switches,
    },
    workingDir,
  );

test('stands in the logs of the project, wherever in it the command is run', () => {
  expect(find({}, join(dir, 'models', 'deep'))).toBe(join(dir, 'logs', 'otel.jsonl'));
});

test('stands in the log path, which is meant from the project folder', () => {
  expect(find({ logPath: 'mine', projectDir: '..' }, join(dir, 'models'))).toBe(join(dir, 'mine', 'otel.jsonl'));
});

test('stands where an absolute name says', () => {
  expect(find({ fileName: '/var/x.jsonl', logPath: 'mine' })).toBe('/var/x.jsonl');
});

test('is none where none was asked for', () => {
  expect(find({ fileName: undefined })).toBeUndefined();
});
