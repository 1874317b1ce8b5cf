/** Any value that JSON can spell. */
export type JsonValue = null | boolean | number | string | readonly JsonValue[] | JsonObject;

/** A JSON object. */
export interface JsonObject {
  readonly [key: string]: JsonValue;
}

/** Whether a JSON value is an object (not a list, not null). */
export function isJsonObject(value: JsonValue | undefined): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/**
 * How many levels of objects and lists a record's JSON may have where it is read from a file. Code that walks JSON
 * recurses, and runs out of stack some thousands of levels down; the engine's records have about ten.
 */
export const MAX_JSON_LEVELS = 200;

const QUOTE = 0x22;
const BACKSLASH = 0x5c;

/** Whether a JSON text has more levels than {@link MAX_JSON_LEVELS}. Texts with few brackets are decided at once. */
export function isNestedTooDeep(json: string): boolean {
  if (!hasManyBrackets(json)) return false;
  let level = 0;
  let isInString = false;
  for (let i = 0; i < json.length; i++) {
    const code = json.charCodeAt(i);
    if (isInString) {
      if (code === BACKSLASH) i++;
      else if (code === QUOTE) isInString = false;
    } else if (code === QUOTE) {
      isInString = true;
    } else if (code === 0x7b || code === 0x5b) {
      if (++level > MAX_JSON_LEVELS) return true;
    } else if (code === 0x7d || code === 0x5d) {
      level--;
    }
  }
  return false;
}

/** Whether there are more opening brackets than levels are allowed, strings included. */
function hasManyBrackets(json: string): boolean {
  let count = 0;
  for (const bracket of ['{', '[']) {
    for (let at = json.indexOf(bracket); at !== -1; at = json.indexOf(bracket, at + 1)) {
      if (++count > MAX_JSON_LEVELS) return true;
    }
  }
  return false;
}

/**
 * A record's attributes: one JSON object, kept as its text until someone needs a value. The text is what is written,
 * so a number's spelling (`1.0`, a 64-bit integer) survives, and most records are never parsed at all.
 */
export class Attributes {
  static readonly EMPTY = new Attributes('{}');

  /** @param json text of a JSON object, already known to be one (checked by a parser at the edge). */
  static fromJson(json: string): Attributes {
    return new Attributes(json);
  }

  /** A text and the object that it was just parsed to. */
  static parsed(json: string, value: JsonObject): Attributes {
    return new Attributes(json, value);
  }

  static of(value: JsonObject): Attributes {
    return new Attributes(undefined, value);
  }

  private constructor(
    private jsonText?: string,
    private parsed?: JsonObject,
  ) {}

  /** The object's text, on one line. */
  get json(): string {
    this.jsonText ??= JSON.stringify(this.parsed);
    return this.jsonText;
  }

  /** The object itself, parsed on first use. */
  get value(): JsonObject {
    this.parsed ??= JSON.parse(this.jsonText ?? '{}') as JsonObject;
    return this.parsed;
  }

  get(name: string): JsonValue | undefined {
    return Object.hasOwn(this.value, name) ? this.value[name] : undefined;
  }

  /** The attribute if it is a string. */
  text(name: string): string | undefined {
    const value = this.get(name);
    return typeof value === 'string' ? value : undefined;
  }

  /** The attribute if it is a whole number, spelt as a number or (64-bit) as a string of digits. */
  integer(name: string): number | undefined {
    const value = this.get(name);
    if (typeof value === 'number') return Number.isSafeInteger(value) ? value : undefined;
    return typeof value === 'string' && /^-?\d{1,15}$/.test(value) ? Number(value) : undefined;
  }

  /** The attribute if it is an object. */
  object(name: string): JsonObject | undefined {
    const value = this.get(name);
    return isJsonObject(value) ? value : undefined;
  }
}

/**
 * A text's characters in memory of their own. What is cut out of a line (by `JSON.parse`, `slice` or a pattern) may be a
 * reference into it that keeps the whole line in memory; code that keeps such a text for long keeps a copy instead.
 */
export function ownText(text: string): string {
  return Buffer.from(text, 'utf16le').toString('utf16le');
}

/** A resource attribute's value: OTLP's scalars and lists of them. */
export type ResourceValue = string | number | boolean | readonly (string | number | boolean)[];

/** What sent the records: the process's resource and its instrumentation scope. */
export interface Resource {
  readonly attributes: Readonly<Record<string, ResourceValue>>;
  readonly scope: { readonly name: string; readonly version: string };
}

/** The resource that a JSON value is; `undefined` for any other value. */
export function asResource(value: JsonValue | undefined): Resource | undefined {
  const isResource = isJsonObject(value) && isJsonObject(value.attributes) && isJsonObject(value.scope);
  return isResource ? (value as unknown as Resource) : undefined;
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

/** What a run belongs to, besides its account. */
export const SCOPE_KINDS = ['job', 'environment', 'project'] as const;

/** The names of the job, environment and project that records belong to, as far as something says them; none of them is empty. */
export type NamedScope = Readonly<Partial<Record<(typeof SCOPE_KINDS)[number], string>>>;

/** The resource attribute that names the job, the environment or the project of records. */
export const SCOPE_ATTRIBUTES = {
  job: 'run_bridge.job',
  environment: 'run_bridge.environment',
  project: 'run_bridge.project',
} as const;

/** Longer names of jobs, environments and projects are cut off in attributes, and refused elsewhere: a sender that makes them up fills no disk. In characters. */
export const MAX_SCOPE_NAME_LENGTH = 200;

/** Who sends records. */
export interface Sender {
  /** The account whose the records are; `null` for the first. */
  readonly accountId: number | null;
  /** What the records belong to, whatever their resource says. */
  readonly scope: NamedScope;
}

/** A sender of whom nothing is known: its records are the first account's. */
export const UNKNOWN_SENDER: Sender = { accountId: null, scope: {} };

/** The resource as one of a sender: of its account, and with the names that it gives in place of the resource's own; itself where it is. */
export function ofSender(resource: Resource, { accountId, scope }: Sender): Resource {
  const owned = ofAccount(resource, accountId);
  const names = SCOPE_KINDS.flatMap((kind) => {
    const name = scope[kind];
    return name === undefined ? [] : [[SCOPE_ATTRIBUTES[kind], name] as const];
  });
  if (names.every(([attribute, name]) => owned.attributes[attribute] === name)) return owned;
  return { ...owned, attributes: { ...owned.attributes, ...Object.fromEntries(names) } };
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
