import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { reachableUrl } from '../reachable-url.js';

/** Where the program that holds a data folder says that it listens; it may have died since. `undefined` where none says so. */
export function announcedAddress(dataFolder: string): string | undefined {
  try {
    const holder: unknown = JSON.parse(readFileSync(join(dataFolder, 'lock.json'), 'utf8'));
    const isSaid = typeof holder === 'object' && holder !== null && 'address' in holder;
    return isSaid && typeof holder.address === 'string' ? reachableUrl(holder.address) : undefined;
  } catch {
    return undefined;
  }
}
