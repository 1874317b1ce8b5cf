import type { LookupAddress } from 'node:dns';
import type { LookupFunction } from 'node:net';
import type { AddressRules } from './address-rules.js';
import { ForbiddenAddressError } from './forbidden-address-error.js';

/** Resolves a name to all of its addresses. */
export type ResolveAll = (hostname: string) => Promise<readonly LookupAddress[]>;

/**
 * A `lookup` for sockets that gives them allowed addresses only. The socket connects to what was looked at: a name that
 * resolves to another address a moment later changes nothing.
 */
export function guardedLookup(rules: AddressRules, resolve: ResolveAll): LookupFunction {
  return (hostname, options, callback) => {
    resolve(hostname).then(
      (addresses) => {
        const allowed = addresses.filter(({ address }) => rules.ruleAgainst(address) === undefined);
        const wanted = allowed.filter(({ family }) => !options.family || family === options.family);
        const [first] = wanted;
        if (first === undefined) {
          const rule = addresses.map(({ address }) => rules.ruleAgainst(address)).find((one) => one !== undefined);
          callback(new ForbiddenAddressError(hostname, rule ?? 'it has no address'), [], 0);
        } else if (options.all === true) callback(null, [...wanted]);
        else callback(null, first.address, first.family);
      },
      (error: unknown) => callback(error instanceof Error ? error : new Error(String(error)), [], 0),
    );
  };
}
