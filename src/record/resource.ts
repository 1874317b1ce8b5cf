/** A resource attribute's value: OTLP's scalars and lists of them. */
export type ResourceValue = string | number | boolean | readonly (string | number | boolean)[];

/** What sent the records: the process's resource and its instrumentation scope. */
export interface Resource {
  readonly attributes: Readonly<Record<string, ResourceValue>>;
  readonly scope: { readonly name: string; readonly version: string };
}

/** The resource of records that came without one (JSONL and Parquet files have none). */
export const UNKNOWN_RESOURCE: Resource = { attributes: {}, scope: { name: '', version: '' } };

/** A text that is equal for equal resources, whatever the order of their attributes. */
export function resourceKey(resource: Resource): string {
  let key = KEYS.get(resource);
  if (key === undefined) {
    const attributes = Object.entries(resource.attributes).sort(([a], [b]) => (a < b ? -1 : 1));
    key = JSON.stringify([attributes, resource.scope.name, resource.scope.version]);
    KEYS.set(resource, key);
  }
  return key;
}

/** Asked of every record, and records share a few resources. */
const KEYS = new WeakMap<Resource, string>();

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

/**
 * Resource attribute with the time at which an import began that handed the records over, in milliseconds since 1970, as a text
 * of digits. Nobody is notified of a run that had ended by then.
 */
export const IMPORT_ATTRIBUTE = 'run_bridge.import.began_unix_ms';

/** When the import began that a resource's records came by; `null` where they came as they happened. */
export function importBeganUnixMs({ attributes }: Resource): number | null {
  const value = attributes[IMPORT_ATTRIBUTE];
  return typeof value === 'string' && /^\d{1,15}$/.test(value) ? Number(value) : null;
}

/** The resource as that of an import. */
export function asImported(resource: Resource, beganUnixMs: number): Resource {
  return { ...resource, attributes: { ...resource.attributes, [IMPORT_ATTRIBUTE]: String(beganUnixMs) } };
}

/** The resource as it was before an import. */
export function withoutImport(resource: Resource): Resource {
  const { [IMPORT_ATTRIBUTE]: _began, ...attributes } = resource.attributes;
  return { ...resource, attributes };
}

/**
 * Resource attribute with the id of the step whose command sent the records. `exec` puts it into
 * `OTEL_RESOURCE_ATTRIBUTES`, so it tells commands that share a trace apart from their first record on.
 */
export const STEP_ATTRIBUTE = 'run_bridge.step.id';

/** The step that a resource names; `null` where it names none. */
export function stepIdOf({ attributes }: Resource): string | null {
  const value = attributes[STEP_ATTRIBUTE];
  return typeof value === 'string' && value !== '' ? value : null;
}

/** How a step stands in the environment of its command, and of all that this starts: last in `OTEL_RESOURCE_ATTRIBUTES`. */
export function stepInEnvironment(stepId: string): string {
  return `${STEP_ATTRIBUTE}=${stepId}\0`;
}
