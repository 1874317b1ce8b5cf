/** Where a server listens; port 0 picks a free one. */
export interface ListenAddress {
  readonly host: string;
  readonly port: number;
}

/** The host of an address that names only a port: reached from this machine alone. */
const LOOPBACK = '127.0.0.1';

/** Reads `127.0.0.1:4318`, `[::1]:4318`, `localhost:0` or a port alone; `undefined` when it is none of these. */
export function parseListenAddress(text: string): ListenAddress | undefined {
  const match = /^(?:(\[[0-9a-f:.]+\]|[a-z0-9._-]+):)?(\d{1,5})$/i.exec(text.trim());
  const port = Number(match?.[2]);
  if (match === null || port > 65_535) return undefined;
  return { host: (match[1] ?? LOOPBACK).replace(/^\[|\]$/g, ''), port };
}

/** Spells an address as `parseListenAddress` reads it. */
export function formatListenAddress(address: ListenAddress): string {
  return address.host.includes(':') ? `[${address.host}]:${address.port}` : `${address.host}:${address.port}`;
}
