/** Runs actions one after the other, in the order of the calls; a failed one does not hold up the next. */
export class Turns {
  private last: Promise<unknown> = Promise.resolve();

  run<Result>(action: () => Promise<Result>): Promise<Result> {
    const done = this.last.then(action);
    this.last = done.catch(() => undefined);
    return done;
  }

  /** Resolves when all actions requested so far have ended. */
  async ended(): Promise<void> {
    await this.last;
  }
}

/** Runs actions of the same key one after the other, and those of different keys concurrently. */
export class KeyedTurns<Key> {
  private readonly last = new Map<Key, Promise<void>>();

  run<Result>(key: Key, action: () => Promise<Result>): Promise<Result> {
    const done = (this.last.get(key) ?? Promise.resolve()).then(action);
    const forget = () => {
      if (this.last.get(key) === ended) this.last.delete(key);
    };
    const ended = done.then(forget, forget);
    this.last.set(key, ended);
    return done;
  }

  /** Resolves when all actions requested so far have ended. */
  async ended(): Promise<void> {
    await Promise.all(this.last.values());
  }
}

/** Runs an action for each item, at most `atOnce` at a time. @throws the first error, after all have ended */
export async function forEachOf<Item>(
  items: readonly Item[],
  atOnce: number,
  action: (item: Item) => Promise<void>,
): Promise<void> {
  const queue = items.values();
  const errors: unknown[] = [];
  const work = async () => {
    for (const item of queue) await action(item).catch((error: unknown) => errors.push(error));
  };
  await Promise.all(Array.from({ length: Math.min(atOnce, items.length) }, work));
  if (errors.length > 0) throw errors[0];
}

/**
 * Gives those who export their turns: one each round of the event loop, behind what came in and what is to be answered, whoever exports how much. A turn
 * is a bounded piece of work, so a backlog of any length keeps nobody waiting for long.
 */
export class ExportTurns {
  private readonly waiting: (() => void)[] = [];
  private isDue = false;

  /** Resolves when it is the caller's turn; what it does then, it does before it waits for anything. */
  next(): Promise<void> {
    return new Promise((resolve) => {
      this.waiting.push(resolve);
      this.giveLater();
    });
  }

  private giveLater(): void {
    if (this.isDue) return;
    this.isDue = true;
    // Set within such a callback it is called in the next round.
    setImmediate(() => {
      this.isDue = false;
      this.waiting.shift()?.();
      if (this.waiting.length > 0) this.giveLater();
    });
  }
}
