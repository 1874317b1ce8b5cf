/** A holder without a renewal for this long loses its lease, in milliseconds. */
export const LEASE_MS = 15_000;
/** How often a holder renews, in milliseconds: two attempts in a row may fail. */
export const LEASE_RENEW_MS = 5_000;
