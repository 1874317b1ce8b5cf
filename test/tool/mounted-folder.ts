import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** A small file system of its own in memory, for tests that fill it or make it read-only. Needs the right to mount. */
export class MountedFolder {
  /** @returns `undefined` where this user, or this container, may not mount. */
  static mount(sizeMib: number): MountedFolder | undefined {
    const path = mkdtempSync(join(tmpdir(), 'run-bridge-mount-'));
    try {
      run('mount', '-t', 'tmpfs', '-o', `size=${sizeMib}m`, 'tmpfs', path);
      return new MountedFolder(path);
    } catch {
      rmSync(path, { recursive: true });
      return undefined;
    }
  }

  private isCovered = false;

  private constructor(readonly path: string) {}

  /** From now on nothing is opened for writing by this path (EROFS), as after a disk error. */
  makeReadOnly(): void {
    run('mount', '--bind', this.path, this.path);
    run('mount', '-o', 'remount,bind,ro', this.path);
    this.isCovered = true;
  }

  makeWritable(): void {
    run('umount', '--lazy', this.path);
    this.isCovered = false;
  }

  remove(): void {
    if (this.isCovered) this.makeWritable();
    run('umount', '--lazy', this.path);
    rmSync(this.path, { recursive: true, force: true });
  }
}

function run(command: string, ...args: string[]): void {
  execFileSync(command, args, { stdio: 'ignore' });
}
