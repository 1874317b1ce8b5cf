import type { Resource, ResourceValue } from './resource.js';
import { STEP_ATTRIBUTE, stepIdOf } from './step-attribute.js';

/**
 * Resource attribute with the number of the account whose the records are, where that is not the first: the bridge puts it
 * there, by the sender's token, and takes it away where a sender does.
 */
export const ACCOUNT_ATTRIBUTE = 'run_bridge.account.id';

/** The account whose a resource's records are; `null` for the first. */
export function accountOf({ attributes }: Resource): number | null {
  const value = attributes[ACCOUNT_ATTRIBUTE];
  return typeof value === 'number' ? value : null;
}

/** Whether an attribute is one that no sender may set: it would make its records another account's. */
export function isReserved(name: string, value: ResourceValue): boolean {
  if (name === ACCOUNT_ATTRIBUTE) return true;
  return name === STEP_ATTRIBUTE && typeof value === 'string' && value.includes('/');
}

/**
 * The step's id within all accounts: `10002/a` for the step that account 10002 calls `a`; the first account's are as they
 * are. No account can name another's.
 */
export function stepIdFor(accountId: number | null, stepId: string): string {
  return accountId === null ? stepId : `${accountId}/${stepId}`;
}

/** The account whose step it is; `null` for the first. @param stepId as `stepIdFor` makes it */
export function accountOfStep(stepId: string): number | null {
  const [, accountId] = /^(\d+)\//.exec(stepId) ?? [];
  return accountId === undefined ? null : Number(accountId);
}

/** The resource as one of an account; itself where it is. A step of another account's is left out. */
export function ofAccount(resource: Resource, accountId: number | null): Resource {
  const stepId = stepIdOf(resource);
  const isOwnStep = stepId === null || accountOfStep(stepId) === accountId;
  if (accountOf(resource) === accountId && isOwnStep) return resource;
  const { [ACCOUNT_ATTRIBUTE]: _account, [STEP_ATTRIBUTE]: _step, ...attributes } = resource.attributes;
  const isNameOfOwn = stepId !== null && !stepId.includes('/');
  return {
    ...resource,
    attributes: {
      ...attributes,
      ...(isNameOfOwn && { [STEP_ATTRIBUTE]: stepIdFor(accountId, stepId) }),
      ...(accountId !== null && { [ACCOUNT_ATTRIBUTE]: accountId }),
    },
  };
}
