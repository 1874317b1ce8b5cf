import { createHash } from 'node:crypto';

/** Tells whether commands are still those that they were: a retry goes on in the midst of them. */
export function digestOf(commands: readonly (readonly string[])[]): string {
  return createHash('sha256').update(JSON.stringify(commands)).digest('hex');
}
