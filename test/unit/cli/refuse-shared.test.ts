import { mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { runInProcess } from '../../fake/run-in-process.js';

let dir: string;
let data: string;
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'run-bridge-shared-'));
  data = join(dir, 'data');
  mkdirSync(join(data, 'journal'), { recursive: true });
});
afterEach(() => rmSync(dir, { recursive: true }));

describe('a data folder of one of several processes', () => {
  it.each([
    [['query', 'SELECT 1'], 'POST /api/run-bridge/v1/query'],
    [['report'], 'GET /api/run-bridge/v1/runs/RUN/measures'],
    [['rebuild'], 'restore the database from a pg_dump'],
  ])('has no runs for %j, which says what to do instead', async (command, instead) => {
    const { exitCode, stderr } = await runInProcess([...command, '--data-dir', data], dir);
    expect([exitCode, stderr]).toEqual([1, expect.stringMatching(/several processes share the work.*bucket/)]);
    expect(stderr).toContain(instead);
  });

  it.each([
    ['token', 'list'],
    ['webhook', 'list'],
    ['retain', '--dry-run'],
  ])('is not given a state of its own by %s %s: that is in the database', async (...command) => {
    writeFileSync(join(data, 'folder-id'), 'id');
    const { exitCode, stderr } = await runInProcess([...command, '--data-dir', data], dir);
    expect([exitCode, stderr]).toEqual([2, expect.stringContaining('set DATABASE_URL')]);
    expect(readdirSync(data).sort()).toEqual(['folder-id', 'journal']);
  });

  it('is what it was before, where runs of one process are in it', async () => {
    mkdirSync(join(data, 'runs'));
    const { stderr } = await runInProcess(['report', '--data-dir', data], dir);
    expect(stderr).toContain('no run is in');
  });
});
