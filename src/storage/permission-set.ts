/** What may be done with a token, by name; `src/api/permissions.ts` says what each one allows. */
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

/** @returns `undefined` for what is none; spelt as a name or as a title, for example `Account Admin` or `read-only`. */
export function parsePermissionSet(text: string): PermissionSet | undefined {
  const name = text.trim().toLowerCase().replaceAll(/[ -]/g, '_');
  return PERMISSION_SETS.find((one) => one === name);
}
