import type { Shortage } from '../component/guard.js';

/** A body was not read, because there is no room for it just now; the sender is told when to try again. */
export class ShortageError extends Error {
  override readonly name = 'ShortageError';
  constructor(readonly shortage: Shortage) {
    super(shortage.message);
  }
}
