/** Wakes whoever waits for work to come to rest; each looks for itself whether it has. */
export class RestSignal {
  private waiters: (() => void)[] = [];

  /** Something came to rest, or somebody waits no longer. */
  notify(): void {
    const { waiters } = this;
    this.waiters = [];
    for (const resolve of waiters) resolve();
  }

  /** Resolves as soon as something holds, or `deadline` aborts. */
  async until(holds: () => boolean, deadline?: AbortSignal): Promise<void> {
    const onAbort = () => this.notify();
    deadline?.addEventListener('abort', onAbort);
    while (!holds() && deadline?.aborted !== true) {
      await new Promise<void>((resolve) => this.waiters.push(resolve));
    }
    deadline?.removeEventListener('abort', onAbort);
  }
}
