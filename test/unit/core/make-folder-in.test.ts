import { existsSync, mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { makeFolderIn } from '../../../src/core/folders.js';

let parent: string;
beforeEach(() => {
  parent = mkdtempSync(join(tmpdir(), 'run-bridge-folder-'));
});
afterEach(() => rmSync(parent, { recursive: true, force: true }));

describe('a folder in another one', () => {
  it('is made for its owner alone, and left as it is where it is there', async () => {
    const path = await makeFolderIn(parent, 'rows');
    expect(statSync(path).mode & 0o777).toBe(0o700);
    writeFileSync(join(path, '1.json'), '{}');
    expect(await makeFolderIn(parent, 'rows')).toBe(path);
    expect(existsSync(join(path, '1.json'))).toBe(true);
  });

  it('does not bring the other one back', async () => {
    rmSync(parent, { recursive: true });
    await expect(makeFolderIn(parent, 'rows')).rejects.toMatchObject({ code: 'ENOENT' });
    expect(existsSync(parent)).toBe(false);
  });
});
