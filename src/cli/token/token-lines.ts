import { alignedRows } from '../../core/text.js';
import type { TokenRow } from '../../storage/token-store.js';

const HEADINGS = ['ID', 'NAME', 'PERMISSION', 'USER', 'ACCOUNT', 'CREATED', 'LAST USED', 'STATE'];

/** Tokens as a table without their values, of which only hashes are stored. */
export function tokenLines(tokens: readonly TokenRow[], nowUnixMs: number): readonly string[] {
  return alignedRows([HEADINGS, ...tokens.map((token) => cells(token, nowUnixMs))]);
}

/** A time for people: `2026-01-31 12:34 UTC`. */
export function dateOf(unixMs: number): string {
  return `${new Date(unixMs).toISOString().slice(0, 16).replace('T', ' ')} UTC`;
}

function cells(token: TokenRow, nowUnixMs: number): readonly string[] {
  return [
    String(token.id),
    token.name,
    token.permission,
    token.userName ?? '-',
    String(token.accountId),
    dateOf(token.createdUnixMs),
    token.usedUnixMs === null ? 'never' : dateOf(token.usedUnixMs),
    stateOf(token, nowUnixMs),
  ];
}

function stateOf({ revokedUnixMs, expiresUnixMs }: TokenRow, nowUnixMs: number): string {
  if (revokedUnixMs !== null) return `revoked ${dateOf(revokedUnixMs)}`;
  if (expiresUnixMs === null) return 'good';
  return expiresUnixMs <= nowUnixMs ? `expired ${dateOf(expiresUnixMs)}` : `good until ${dateOf(expiresUnixMs)}`;
}
