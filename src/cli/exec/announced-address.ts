import { readHolder } from '../../store/lock-holder.js';
import { reachableUrl } from '../reachable-url.js';

/** Where the program that holds a data folder says that it listens; it may have died since. `undefined` where none says so. */
export function announcedAddress(dataFolder: string): string | undefined {
  const address = readHolder(dataFolder)?.address ?? undefined;
  return address === undefined ? undefined : reachableUrl(address);
}
