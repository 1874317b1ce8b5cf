import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';

let dataFolder: string;
beforeAll(() => {
  dataFolder = mkdtempSync(join(tmpdir(), 'run-bridge-row-group-'));
});
afterAll(() => rmSync(dataFolder, { recursive: true, force: true }));

test('a row group of a million rows is read in slices, though the file does not say where its pages are', () => {
  const args = ['import', '--data-dir', dataFolder, 'test/fixture/packed/rows-1M.parquet'];
  // Read whole, it takes more than ten times this heap.
  execFileSync(process.execPath, ['--max-old-space-size=400', 'dist/main.js', ...args], { stdio: 'ignore' });
  const logs = execFileSync('find', [join(dataFolder, 'runs'), '-name', 'telemetry.jsonl'], { encoding: 'utf8' });
  // They are all the same record.
  expect(readFileSync(logs.trim(), 'utf8').trimEnd().split('\n')).toHaveLength(1);
});
