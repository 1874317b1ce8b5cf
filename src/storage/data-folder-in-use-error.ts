import type { LockHolder } from './lock-holder.js';

/** Another process serves the data folder. The message names it and says what to do; the program ends with exit code 2. */
export class DataFolderInUseError extends Error {
  override readonly name = 'DataFolderInUseError';
  constructor(
    readonly folder: string,
    /** `undefined` if the other process has not written it. */
    readonly holder: LockHolder | undefined,
    options?: ErrorOptions,
  ) {
    super(`${folder} is in use by ${describe(holder)}; stop it or pass another --data-dir`, options);
  }
}

function describe(holder: LockHolder | undefined): string {
  if (holder === undefined) return 'another process';
  const address = holder.address === null ? '' : ` (listening on ${holder.address})`;
  return `process ${holder.pid} since ${holder.since}${address}`;
}
