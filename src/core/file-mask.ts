const OWNER_ALONE = 0o077;

let callersMask: number | undefined;

/** File permissions of this process; the system has one mask for all of its threads. */
export const fileMask = {
  /** Makes new folders 0700 and new files 0600 from now on: they hold SQL, data values and keys. */
  narrow(): void {
    callersMask ??= process.umask(OWNER_ALONE);
  },

  /** Runs `start`, which starts a command of the caller, with the mask that this process was started with. */
  asCaller<T>(start: () => T): T {
    if (callersMask === undefined) return start();
    process.umask(callersMask);
    try {
      return start();
    } finally {
      process.umask(OWNER_ALONE);
    }
  },
};
