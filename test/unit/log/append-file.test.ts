import { mkdtempSync, readdirSync, readFileSync, readlinkSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { AppendFile } from '../../../src/log/append-file.js';

const noSync = async () => {};
const MIB = Buffer.alloc(1024 * 1024, 'a');
/** As Linux writes it in /proc (fcntl.h), octal. */
const O_DSYNC = 0o10000;

let folder: string;
let path: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'run-bridge-append-file-'));
  path = join(folder, 'telemetry.jsonl');
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

test.each([
  [true, O_DSYNC],
  [false, 0],
])('appends that are to be synced (%s) are so by the write itself, on Linux', async (isSynced, flag) => {
  const file = await AppendFile.open(path, { isSynced, syncFolder: noSync });
  expect(flagsOf(path) & O_DSYNC).toBe(flag);
  await file.close();
});

test('more pieces than the system takes at once stand one behind the other', async () => {
  const file = await AppendFile.open(path, { isSynced: true, syncFolder: noSync });
  const pieces = Array.from({ length: 2_500 }, (_, index) => Buffer.from(`${index}\n`));
  await file.append(pieces);
  await file.append([Buffer.from('end\n')]);
  const text = readFileSync(path, 'utf8');
  expect(text).toBe(`${pieces.join('')}end\n`);
  expect(file.lengthBytes).toBe(text.length);
  await file.close();
});

test('it is closed when what is being written has been: its descriptor may be another file’s next', async () => {
  const file = await AppendFile.open(path, { isSynced: true, syncFolder: noSync });
  const appended = file.append([MIB, MIB, MIB]);
  const closed = file.close();
  await Promise.all([appended, closed]);
  expect(readFileSync(path).equals(Buffer.concat([MIB, MIB, MIB]))).toBe(true);
});

/** How this process has a file open (proc(5)). */
function flagsOf(path: string): number {
  for (const name of readdirSync('/proc/self/fd')) {
    try {
      if (readlinkSync(`/proc/self/fd/${name}`) !== path) continue;
    } catch {
      // Closed meanwhile.
      continue;
    }
    const [, flags = ''] = /^flags:\s*(\d+)/m.exec(readFileSync(`/proc/self/fdinfo/${name}`, 'utf8')) ?? [];
    return Number.parseInt(flags, 8);
  }
  throw new Error(`${path} is not open`);
}
