import { constants } from 'node:os';

/** The exit status that shells report for a command that a signal killed: 128 and the signal's number. */
export function signalStatus(signal: NodeJS.Signals): number {
  return 128 + constants.signals[signal];
}
