/** The permission sets of tokens, by name; `src/api/permissions.ts` lists the rights of each. */
export const PERMISSION_SETS = [
  'account_admin',
  'admin',
  'developer',
  'analyst',
  'webhooks_only',
  'read_only',
] as const;

/** One of `PERMISSION_SETS`. */
export type PermissionSet = (typeof PERMISSION_SETS)[number];

/** @returns `undefined` for an unknown one; accepts names and titles, for example `Account Admin` or `read-only`. */
export function parsePermissionSet(text: string): PermissionSet | undefined {
  const name = text.trim().toLowerCase().replaceAll(/[ -]/g, '_');
  return PERMISSION_SETS.find((one) => one === name);
}
