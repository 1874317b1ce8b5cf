import type { Caller } from './caller.js';

/** What an endpoint asks of its caller. */
export type Right =
  | 'runs:read'
  | 'artifacts:read'
  | 'artifacts:write'
  | 'jobs:read'
  | 'jobs:run'
  | 'runs:cancel'
  | 'query'
  | 'webhooks:read'
  | 'webhooks:write'
  | 'tokens:manage'
  | 'telemetry:write'
  | 'metrics:read';

const READING: readonly Right[] = ['runs:read', 'artifacts:read', 'jobs:read', 'metrics:read'];
const WORKING: readonly Right[] = [
  ...READING,
  'query',
  'jobs:run',
  'runs:cancel',
  'artifacts:write',
  'telemetry:write',
];

/**
 * The rights of each permission set; docs/operate.md shows them as a table. The names are the hosted platform's. `sender` is
 * an anonymous client at an address that accepts telemetry without a token.
 */
export const PERMISSIONS: Readonly<Record<Caller['permission'], readonly Right[]>> = {
  account_admin: [...WORKING, 'webhooks:read', 'webhooks:write', 'tokens:manage'],
  admin: [...WORKING, 'webhooks:read', 'webhooks:write'],
  developer: [...WORKING, 'webhooks:read', 'webhooks:write'],
  analyst: [...READING, 'query'],
  webhooks_only: ['webhooks:read', 'webhooks:write'],
  read_only: [...READING, 'webhooks:read'],
  sender: ['telemetry:write', 'artifacts:write', 'metrics:read'],
};

/** Whether a caller has a right. */
export function may({ permission }: Pick<Caller, 'permission'>, right: Right): boolean {
  return PERMISSIONS[permission].includes(right);
}
