import { type FSWatcher, watch } from 'node:fs';
import { basename, dirname } from 'node:path';
import type { Clock } from '../component/clock.js';

/**
 * Notices that a file may have changed: by the system's word where there is one, and by the time in any case, since
 * network file systems and some containers say nothing.
 */
export class FileWatch {
  private folder: FSWatcher | undefined;
  private file: FSWatcher | undefined;
  private isWoken = false;
  private wake: (() => void) | undefined;

  constructor(
    private readonly path: string,
    private readonly clock: Clock,
    /** How long to wait at most, in milliseconds. */
    private readonly pollMs: number,
  ) {}

  /**
   * Resolves when the file may have changed since the last call, the time is over, or the signal aborts; keeps the process
   * alive meanwhile.
   * @param isPipe whether the file is a named pipe: its folder is not told what is written into it.
   */
  async wait(signal: AbortSignal, isPipe: boolean): Promise<void> {
    this.folder ??= this.begin(dirname(this.path), (name) => name === null || name === basename(this.path));
    if (isPipe) this.file ??= this.begin(this.path, () => true);
    if (!this.isWoken && !signal.aborted) {
      // The clock's timers let a process end, and so do watchers where there are none.
      const alive = setInterval(() => {}, 2 ** 30);
      await new Promise<void>((resolve) => {
        const timer = this.clock.after(this.pollMs, done);
        this.wake = done;
        signal.addEventListener('abort', done, { once: true });
        function done(): void {
          timer.cancel();
          signal.removeEventListener('abort', done);
          resolve();
        }
      });
      clearInterval(alive);
      this.wake = undefined;
    }
    this.isWoken = false;
  }

  /** Ends a wait that is under way, or the next one. */
  notify(): void {
    this.isWoken = true;
    this.wake?.();
  }

  close(): void {
    this.folder?.close();
    this.file?.close();
  }

  private begin(path: string, concerns: (name: string | null) => boolean): FSWatcher | undefined {
    try {
      const watcher = watch(path, (_event, name) => {
        if (concerns(name)) this.notify();
      });
      // A folder that goes away, or one watch too many: the time is left to go by.
      watcher.on('error', () => watcher.close());
      return watcher;
    } catch {
      return undefined;
    }
  }
}
