import { appendFileSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { parseArtifactPath, StoreArtifactSink } from '../../../src/storage/artifacts.js';

// What is thrown where nobody catches it fails the file.
it('ends when it is told to, also before the store has read a byte', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'run-bridge-sink-'));
  const file = join(folder, 'a.sql');
  writeFileSync(file, 'select 1');
  const path = parseArtifactPath('run/a.sql');
  if (path === undefined) throw new Error('no path');
  const stop = new AbortController();
  const chunks: Uint8Array[] = [];
  const sink = new StoreArtifactSink(async () => ({
    async put(_key, content) {
      stop.abort(new Error('stopped'));
      // As a store that makes a folder first.
      await new Promise((resolve) => setImmediate(resolve));
      for await (const chunk of content) chunks.push(chunk);
    },
  }));
  await expect(sink.put({ runId: 1, stepIndex: 1, path }, file, stop.signal)).rejects.toThrow('stopped');
  expect(chunks).toEqual([]);
  rmSync(folder, { recursive: true });
});

const KIB = 1024;

it.each([0, 1, 64 * KIB - 1, 64 * KIB, 64 * KIB + 1, 200 * KIB])(
  'brings all of a file of %i bytes, and in large pieces what it gets while it is read',
  async (size) => {
    const folder = mkdtempSync(join(tmpdir(), 'run-bridge-sink-'));
    const file = join(folder, 'a.json');
    const path = parseArtifactPath('run/a.json');
    if (path === undefined) throw new Error('no path');
    const first = Buffer.alloc(size, 'abcdefg');
    const later = Buffer.alloc(300 * KIB, '0123456789');
    writeFileSync(file, first);
    const chunks: Uint8Array[] = [];
    const sink = new StoreArtifactSink(async () => ({
      async put(_key, content) {
        for await (const chunk of content) {
          if (chunks.length === 0) appendFileSync(file, later);
          chunks.push(chunk);
        }
      },
    }));
    await sink.put({ runId: 1, stepIndex: 1, path }, file, new AbortController().signal);
    const whole = Buffer.concat(chunks);
    // What had ended before more came is whole as it was.
    const isGrown = size >= 64 * KIB;
    expect(whole.equals(isGrown ? Buffer.concat([first, later]) : first)).toBe(true);
    expect(chunks.length).toBeLessThanOrEqual(10);
    rmSync(folder, { recursive: true });
  },
);
