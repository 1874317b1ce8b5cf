/** A sync that has begun, and the one that comes after it, for what came too late for the first. */
interface Syncing {
  readonly current: Promise<void>;
  next?: Promise<void>;
}

/**
 * Makes entries of folders durable. Whoever asks while a sync of the same folder is under way shares the next one, so a
 * thousand new traces do not cost a thousand syncs of the folder that they are in.
 */
export class FolderSync {
  private readonly running = new Map<string, Syncing>();

  /** @param syncFolder does it */
  constructor(private readonly syncFolder: (path: string) => Promise<void>) {}

  /** Resolves when every entry that the folder has now is durable. */
  sync(path: string): Promise<void> {
    const syncing = this.running.get(path);
    if (syncing === undefined) return this.begin(path);
    syncing.next ??= syncing.current.then(
      () => this.begin(path),
      () => this.begin(path),
    );
    return syncing.next;
  }

  private begin(path: string): Promise<void> {
    const syncing: Syncing = {
      current: this.syncFolder(path).finally(() => {
        if (this.running.get(path) === syncing && syncing.next === undefined) this.running.delete(path);
      }),
    };
    this.running.set(path, syncing);
    return syncing.current;
  }
}
