import { mkdir, readdir, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import type { Clock } from '../../core/clock.js';
import type { Component } from '../../core/component.js';

/** What a process that died has left is removed after so long, in milliseconds: a day. */
const LEFT_MS = 86_400_000;

/**
 * Where downloads lie while they are read: `pull/<process id>` in the data folder, so that a bridge and a `pull` that
 * hands over to it do not meet. Removed at the end; what a crash leaves goes a day later.
 */
export class DownloadFolder implements Component {
  readonly name = 'downloads';
  readonly path: string;
  private readonly parent: string;

  constructor(
    dataFolder: string,
    pid: number,
    private readonly clock: Clock,
  ) {
    this.parent = join(dataFolder, 'pull');
    this.path = join(this.parent, String(pid));
  }

  /** @throws Error of the file system when the folder cannot be made. */
  async start(): Promise<void> {
    await rm(this.path, { recursive: true, force: true });
    await mkdir(this.path, { recursive: true });
    for (const name of await readdir(this.parent)) await this.removeOld(join(this.parent, name));
  }

  async shutdown(): Promise<void> {
    await rm(this.path, { recursive: true, force: true });
  }

  private async removeOld(path: string): Promise<void> {
    const found = await stat(path).catch(() => undefined);
    if (found === undefined || this.clock.nowUnixMs() - found.mtimeMs < LEFT_MS) return;
    await rm(path, { recursive: true, force: true });
  }
}
