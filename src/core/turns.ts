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
