import type { Worker } from 'node:worker_threads';
import type { FromThread, TaskMessage, ToThread } from './messages.js';

/** What comes of a thread. */
export interface ThreadLinkHost {
  onMessage(message: Exclude<FromThread, { readonly type: 'done' }>): void;
  /** The thread has ended, asked to or not. Called once. */
  onEnd(reason: Error): void;
}

interface Task {
  resolve(isDrained: boolean): void;
  reject(reason: Error): void;
}

/** One life of the export thread: messages to it and from it. */
export class ThreadLink {
  private readonly tasks = new Map<number, Task>();
  private nextId = 1;
  private hasEnded = false;

  constructor(
    private readonly worker: Worker,
    private readonly host: ThreadLinkHost,
  ) {
    worker.on('message', (message: FromThread) => this.take(message));
    worker.on('messageerror', (error) => this.end(error));
    worker.on('error', (error) => this.end(error instanceof Error ? error : new Error(String(error))));
    worker.on('exit', (code) => this.end(new Error(`it ended by itself with code ${code}`)));
  }

  post(message: ToThread): void {
    if (!this.hasEnded) this.worker.postMessage(message);
  }

  /**
   * Asks the thread to do something. When `deadline` aborts, the thread comes to an end with it as soon as it can.
   * @returns whether everything was exported.
   * @throws Error when the thread says that it failed, or ends.
   */
  request(type: TaskMessage['type'], deadline?: AbortSignal): Promise<boolean> {
    const id = this.nextId;
    this.nextId += 1;
    return new Promise((resolve, reject) => {
      if (this.hasEnded) {
        reject(new Error('the export thread has ended'));
        return;
      }
      const onAbort = () => this.post({ type: 'deadline', id });
      const settle = () => {
        this.tasks.delete(id);
        deadline?.removeEventListener('abort', onAbort);
      };
      this.tasks.set(id, {
        resolve: (isDrained) => {
          settle();
          resolve(isDrained);
        },
        reject: (reason) => {
          settle();
          reject(reason);
        },
      });
      this.post({ type, id });
      if (deadline?.aborted === true) onAbort();
      else deadline?.addEventListener('abort', onAbort, { once: true });
    });
  }

  /** Ends the thread at once. */
  async terminate(): Promise<void> {
    await this.worker.terminate();
  }

  private take(message: FromThread): void {
    if (this.hasEnded) return;
    if (message.type !== 'done') {
      this.host.onMessage(message);
      return;
    }
    const task = this.tasks.get(message.id);
    if (message.error === null) task?.resolve(message.isDrained);
    else task?.reject(new Error(message.error));
  }

  private end(reason: Error): void {
    if (this.hasEnded) return;
    this.hasEnded = true;
    for (const task of [...this.tasks.values()]) task.reject(reason);
    this.host.onEnd(reason);
  }
}
