import { readdirSync, rmSync, utimesSync, writeFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { FollowPositions } from '../../../src/files/follow-positions.js';
import { temporaryFolder } from './reading.js';

const folder = temporaryFolder('follow-positions');
const position = { inode: '12', offset: 300, line: 4, headBytes: 300, headHash: 'abc' };
const settled = async () => {};

describe('FollowPositions', () => {
  it('gives back what was saved, for each path and bridge by itself', async () => {
    const ours = new FollowPositions(folder.path('one'), '');
    expect(await ours.find('/a')).toBeUndefined();
    ours.note('/a', position);
    await ours.save(settled);
    expect(await new FollowPositions(folder.path('one'), '').find('/a')).toEqual(position);
    expect(await new FollowPositions(folder.path('one'), 'http://other').find('/a')).toBeUndefined();
  });

  it('saves nothing that was noted after what must be so before was asked for', async () => {
    const positions = new FollowPositions(folder.path('two'), '');
    positions.note('/a', position);
    await positions.save(async () => positions.note('/a', { ...position, offset: 999 }));
    expect(await new FollowPositions(folder.path('two'), '').find('/a')).toEqual(position);
    await positions.save(settled);
    expect(await new FollowPositions(folder.path('two'), '').find('/a')).toMatchObject({ offset: 999 });
  });

  it('saves nothing when that fails', async () => {
    const positions = new FollowPositions(folder.path('three'), '');
    positions.note('/a', position);
    await expect(positions.save(() => Promise.reject(new Error('away')))).rejects.toThrow('away');
    expect(await new FollowPositions(folder.path('three'), '').find('/a')).toBeUndefined();
  });

  it('takes a damaged file for none', async () => {
    const positions = new FollowPositions(folder.path('four'), '');
    positions.note('/a', position);
    await positions.save(settled);
    for (const name of readdirSync(folder.path('four'))) writeFileSync(folder.path(`four/${name}`), '{"pa');
    expect(await positions.find('/a')).toBeUndefined();
  });

  it('forgets files that have been gone for 30 days', async () => {
    const positions = new FollowPositions(folder.path('five'), '');
    const there = folder.write('there', '');
    for (const path of [there, folder.path('gone')]) positions.note(path, position);
    await positions.save(settled);
    for (const name of readdirSync(folder.path('five'))) utimesSync(folder.path(`five/${name}`), 1000, 1000);
    await positions.prune(4_000_000_000);
    expect(await positions.find(there)).toEqual(position);
    expect(await positions.find(folder.path('gone'))).toBeUndefined();
    rmSync(folder.path('five'), { recursive: true });
    await positions.prune(4_000_000_000);
  });
});
