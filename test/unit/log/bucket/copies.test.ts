import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { systemClock } from '../../../../src/core/clock.js';
import { FileCopies } from '../../../../src/log/bucket/copies.js';
import { traceIdOf } from '../../../fake/memory-record-log.js';

const RUN = traceIdOf(1);
const FILE = { name: 'telemetry.parquet', objectKey: 'key', sizeBytes: 4, modifiedUnixMs: 0 };

let folder: string;
let content: Readable;
let isOpened = false;
let breaksOff = false;
let copies: FileCopies;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'run-bridge-copies-'));
  isOpened = false;
  breaksOff = false;
  copies = new FileCopies({
    bucket: {
      async open() {
        isOpened = true;
        if (breaksOff) setImmediate(() => content.destroy(new Error('reset')));
        return content;
      },
      get: async () => undefined,
    },
    journal: { filesOf: async () => [FILE], latestFiles: async () => [], known: async () => new Set([RUN]) },
    folder,
    clock: systemClock,
  });
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

it('copies a file from the bucket', async () => {
  content = Readable.from([Buffer.from('PAR1')]);
  const copy = await copies.find(RUN, FILE.name);
  expect(readFileSync(copy?.path ?? '', 'utf8')).toBe('PAR1');
});

it('fails the copy alone when the connection breaks off before anything is read', async () => {
  content = new Readable({ read() {} });
  breaksOff = true;
  await expect(copies.find(RUN, FILE.name)).rejects.toThrow('reset');
  expect(existsSync(join(folder, 'files', 'runs', RUN, FILE.name))).toBe(false);
});

it('asks the bucket for nothing when there is no place for the copy', async () => {
  writeFileSync(join(folder, 'files'), 'a file');
  await expect(copies.find(RUN, FILE.name)).rejects.toThrow('ENOTDIR');
  expect(isOpened).toBe(false);
});
