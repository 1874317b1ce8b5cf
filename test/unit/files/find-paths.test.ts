import { mkdirSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { findPaths } from '../../../src/files/find-paths.js';
import { temporaryFolder } from './reading.js';

const folder = temporaryFolder('find-paths');
mkdirSync(folder.path('logs/deep'), { recursive: true });
mkdirSync(folder.path('empty'));
for (const name of ['b.jsonl', 'a.jsonl', 'a[1].jsonl', 'logs/x.jsonl', 'logs/deep/y.parquet', 'logs/notes.txt']) {
  folder.write(name, '');
}
folder.write('logs/resources.jsonl', '');
const find = (operand: string) => findPaths(operand, { workingDir: folder.path('.'), names: '*.{jsonl,parquet}' });

describe('findPaths', () => {
  it('gives a file as it was named, whatever is in its name', async () => {
    expect(await find('b.jsonl')).toEqual(['b.jsonl']);
    expect(await find('a[1].jsonl')).toEqual(['a[1].jsonl']);
    expect(await find(folder.path('b.jsonl'))).toEqual([folder.path('b.jsonl')]);
  });

  it('gives the files of a folder at any depth, without those that hold no records', async () => {
    expect(await find('logs')).toEqual(['logs/deep/y.parquet', 'logs/x.jsonl']);
  });

  it('gives what a pattern matches in the order of the names', async () => {
    expect(await find('?.jsonl')).toEqual(['a.jsonl', 'b.jsonl']);
    expect(await find(`${folder.path('logs')}/**/*.parquet`)).toEqual([folder.path('logs/deep/y.parquet')]);
  });

  it('says what is not there', async () => {
    await expect(find('none.jsonl')).rejects.toThrow('none.jsonl does not exist. Check the path');
    await expect(find('none*')).rejects.toThrow('no file matches none*. Check the pattern');
    await expect(find('empty')).rejects.toThrow('empty is a folder without *.{jsonl,parquet}. Name another folder');
  });
});
