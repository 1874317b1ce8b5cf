import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { ZstdFrames } from '../../../src/core/zstd.js';

const packed = (name: string) => readFileSync(new URL(`../../fixture/packed/${name}`, import.meta.url));
const skippable = Buffer.from('502a4d1803000000aabbcc', 'hex');
/** A frame's header that asks for 64 MiB, in its window and as the size of its only segment. */
const wide = Buffer.from('28b52ffd0080', 'hex');
const wideSegment = Buffer.from('28b52ffda000000004', 'hex');

describe('ZstdFrames', () => {
  it.each(['build-mixed.jsonl.zst', 'parse-twice.jsonl.zst', 'zeros.jsonl.zst'])(
    'finds the next frame behind those of %s, in whatever pieces they come',
    (name) => {
      const file = packed(name);
      for (const size of [1, 7, 512, file.length]) {
        const frames = new ZstdFrames(32 * 2 ** 20);
        for (let at = 0; at < file.length; at += size) frames.push(file.subarray(at, at + size));
        frames.push(skippable);
        expect(() => frames.push(wide)).toThrow('it needs a window of 64 MiB; at most 32 are supported');
      }
    },
  );

  it('knows the window of a frame of a single segment', () => {
    expect(() => new ZstdFrames(32 * 2 ** 20).push(wideSegment)).toThrow('window of 64 MiB');
  });

  it('leaves what is no zstd to others', () => {
    new ZstdFrames(32 * 2 ** 20).push(Buffer.concat([Buffer.from('no zstd'), wide]));
  });
});
