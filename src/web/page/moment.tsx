/** A time in UTC, to the second; what a program reads of it is exact. */
export function Moment({ unixMs }: { readonly unixMs: number }) {
  const exact = new Date(unixMs).toISOString();
  return <time datetime={exact}>{exact.replace('T', ' ').replace(/\.\d+Z$/, ' UTC')}</time>;
}
