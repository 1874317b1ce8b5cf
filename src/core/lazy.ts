/** A value that is made when it is first needed. */
export interface Lazy<Value> {
  /** Returns the value, made on the first call. After a failure the next call tries again. */
  get(): Promise<Value>;
  /** Returns the value, waiting for a call in progress; `undefined` if it was never needed or could not be made. */
  ifNeeded(): Promise<Value | undefined>;
  /** The value; `undefined` until it was made. */
  readonly value: Value | undefined;
  /** Whether the value was made or is being made. */
  readonly isNeeded: boolean;
}

/**
 * Loads or opens something on first use, so that a start does not wait for it.
 * @param make usually imports a module with `import()`; never called while an earlier call is running or has succeeded
 */
export function lazy<Value>(make: () => Promise<Value>): Lazy<Value> {
  let making: Promise<Value> | undefined;
  let value: Value | undefined;
  const begin = async () => {
    try {
      value = await make();
      return value;
    } catch (error) {
      making = undefined;
      throw error;
    }
  };
  return {
    get() {
      making ??= begin();
      return making;
    },
    async ifNeeded() {
      return await making?.catch(() => undefined);
    },
    get value() {
      return value;
    },
    get isNeeded() {
      return making !== undefined;
    },
  };
}
