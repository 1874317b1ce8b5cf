/** A holder that is not heard of for so long has lost its lease, in milliseconds. */
export const LEASE_MS = 15_000;
/** How often a holder says that it is alive, in milliseconds: so that two tries in a row may fail. */
export const LEASE_RENEW_MS = 5_000;
