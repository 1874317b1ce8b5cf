import { mkdtempSync, readdirSync, readlinkSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { AppendFile } from '../../../src/log/append-file.js';
import { ParquetOutput } from '../../../src/parquet/parquet-writer.js';

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'run-bridge-open-files-'));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

// The newest Node ends the process for one that is left open.
describe('a file that fails when it was just opened is closed', () => {
  it('a log whose folder cannot be synced', async () => {
    const path = join(folder, 'telemetry.jsonl');
    const syncFolder = () => Promise.reject(new Error('EIO'));
    await expect(AppendFile.open(path, { isSynced: true, syncFolder })).rejects.toThrow('EIO');
    expect(openPaths()).not.toContain(path);
  });

  it('Parquet on a full disk', async () => {
    const path = join(folder, 'telemetry.parquet');
    symlinkSync('/dev/full', `${path}.partial`);
    await expect(ParquetOutput.create(path)).rejects.toThrow('ENOSPC');
    expect(openPaths()).not.toContain('/dev/full');
  });
});

/** What this process has open (proc(5)). */
function openPaths(): readonly string[] {
  return readdirSync('/proc/self/fd').flatMap((name) => {
    try {
      return [readlinkSync(`/proc/self/fd/${name}`)];
    } catch {
      // Closed meanwhile.
      return [];
    }
  });
}
