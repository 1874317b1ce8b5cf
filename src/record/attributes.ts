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
 * The deepest nesting of objects and lists in a record's JSON that is read from a file. Code that walks JSON recurses and runs out of stack at some thousands of levels; the engine's records have
 * about ten.
 */
export const MAX_JSON_LEVELS = 200;

const QUOTE = 0x22;
const BACKSLASH = 0x5c;

/** Whether a JSON text is nested deeper than {@link MAX_JSON_LEVELS}. Texts with few brackets are decided quickly. */
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

/** Whether a text has more opening brackets than levels are allowed, counting those in strings. */
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
 * The attributes of a record: a JSON object that is kept as text and parsed when a value is first needed. Writing the text keeps the spelling of numbers (`1.0`, a 64-bit integer), and most records
 * are never parsed at all.
 */
export class Attributes {
  static readonly EMPTY = new Attributes('{}');

  /** @param json text that a parser already checked to be a JSON object */
  static fromJson(json: string): Attributes {
    return new Attributes(json);
  }

  /** @param value what `json` was parsed to */
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

  /** The text of the object, on one line. */
  get json(): string {
    this.jsonText ??= JSON.stringify(this.parsed);
    return this.jsonText;
  }

  /** The object, parsed on first use. */
  get value(): JsonObject {
    this.parsed ??= JSON.parse(this.jsonText ?? '{}') as JsonObject;
    return this.parsed;
  }

  get(name: string): JsonValue | undefined {
    return Object.hasOwn(this.value, name) ? this.value[name] : undefined;
  }

  /** Returns the attribute if it is a string. */
  text(name: string): string | undefined {
    const value = this.get(name);
    return typeof value === 'string' ? value : undefined;
  }

  /** Returns the attribute if it is an integer, spelt as a number or (64-bit) as a string of digits. */
  integer(name: string): number | undefined {
    const value = this.get(name);
    if (typeof value === 'number') return Number.isSafeInteger(value) ? value : undefined;
    return typeof value === 'string' && /^-?\d{1,15}$/.test(value) ? Number(value) : undefined;
  }

  /** Returns the attribute if it is an object. */
  object(name: string): JsonObject | undefined {
    const value = this.get(name);
    return isJsonObject(value) ? value : undefined;
  }
}

/**
 * Copies the characters of a text. A text cut out of a line (by `JSON.parse`, `slice` or a pattern) may be a reference into it that keeps the whole line in memory; code that keeps such a text for
 * long keeps a copy instead.
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

/** Returns a JSON value as a resource; `undefined` if it is none. */
export function asResource(value: JsonValue | undefined): Resource | undefined {
  const isResource = isJsonObject(value) && isJsonObject(value.attributes) && isJsonObject(value.scope);
  return isResource ? (value as unknown as Resource) : undefined;
}

/** The resource of records that came without one (JSONL and Parquet files have none). */
export const UNKNOWN_RESOURCE: Resource = { attributes: {}, scope: { name: '', version: '' } };

/** Returns a text that is equal for equal resources, whatever the order of their attributes. */
export function resourceKey(resource: Resource): string {
  let key = KEYS.get(resource);
  if (key === undefined) {
    const attributes = Object.entries(resource.attributes).sort(([a], [b]) => (a < b ? -1 : 1));
    key = JSON.stringify([attributes, resource.scope.name, resource.scope.version]);
    KEYS.set(resource, key);
  }
  return key;
}

/** A cache: the key is needed for every record, and records share a few resources. */
const KEYS = new WeakMap<Resource, string>();

/** Resource attribute with the number of the account that the records belong to; absent for the first account. The bridge sets it by the sender's token, and removes what a sender set. */
export const ACCOUNT_ATTRIBUTE = 'run_bridge.account.id';

/** Returns the account that a resource's records belong to; `null` for the first. */
export function accountOf({ attributes }: Resource): number | null {
  const value = attributes[ACCOUNT_ATTRIBUTE];
  return typeof value === 'number' ? value : null;
}

/** Whether senders may not set an attribute because it would move their records to another account. */
export function isReserved(name: string, value: ResourceValue): boolean {
  if (name === ACCOUNT_ATTRIBUTE) return true;
  return name === STEP_ATTRIBUTE && typeof value === 'string' && value.includes('/');
}

/** Returns an id of a step that is unique across accounts: `10002/a` for the step `a` of account 10002; ids of the first account are unchanged. No account can name a step of another. */
export function stepIdFor(accountId: number | null, stepId: string): string {
  return accountId === null ? stepId : `${accountId}/${stepId}`;
}

/** Returns the account that a step belongs to; `null` for the first. @param stepId as returned by `stepIdFor` */
export function accountOfStep(stepId: string): number | null {
  const [, accountId] = /^(\d+)\//.exec(stepId) ?? [];
  return accountId === undefined ? null : Number(accountId);
}

/** Returns the resource as one of an account, unchanged if it already is. A step of another account is removed. */
export function ofAccount(resource: Resource, accountId: number | null): Resource {
  const stepId = stepIdOf(resource);
  const isInAccount = stepId === null || accountOfStep(stepId) === accountId;
  if (accountOf(resource) === accountId && isInAccount) return resource;
  const { [ACCOUNT_ATTRIBUTE]: _account, [STEP_ATTRIBUTE]: _step, ...attributes } = resource.attributes;
  const isUnqualified = stepId !== null && !stepId.includes('/');
  return {
    ...resource,
    attributes: {
      ...attributes,
      ...(isUnqualified && { [STEP_ATTRIBUTE]: stepIdFor(accountId, stepId) }),
      ...(accountId !== null && { [ACCOUNT_ATTRIBUTE]: accountId }),
    },
  };
}

/** The kinds of things that a run may belong to, besides its account. */
export const SCOPE_KINDS = ['job', 'environment', 'project'] as const;

/** The names of the job, environment and project that records belong to, as far as known; never empty. */
export type NamedScope = Readonly<Partial<Record<(typeof SCOPE_KINDS)[number], string>>>;

/** The resource attributes that name the job, environment and project of records. */
export const SCOPE_ATTRIBUTES = {
  job: 'run_bridge.job',
  environment: 'run_bridge.environment',
  project: 'run_bridge.project',
} as const;

/** The longest name of a job, environment or project, in characters, so that a sender that makes them up cannot fill the disk. Longer ones are cut off in attributes and refused elsewhere. */
export const MAX_SCOPE_NAME_LENGTH = 200;

/** The sender of records. */
export interface Sender {
  /** The account that the records belong to; `null` for the first. */
  readonly accountId: number | null;
  /** The job, environment and project of the records, which override those in their resource. */
  readonly scope: NamedScope;
}

/** An unknown sender, whose records belong to the first account. */
export const UNKNOWN_SENDER: Sender = { accountId: null, scope: {} };

/** Returns the resource as one of a sender: with the sender's account and scope, unchanged if it already has them. */
export function ofSender(resource: Resource, { accountId, scope }: Sender): Resource {
  const owned = ofAccount(resource, accountId);
  const names = SCOPE_KINDS.flatMap((kind) => {
    const name = scope[kind];
    return name === undefined ? [] : [[SCOPE_ATTRIBUTES[kind], name] as const];
  });
  if (names.every(([attribute, name]) => owned.attributes[attribute] === name)) return owned;
  return { ...owned, attributes: { ...owned.attributes, ...Object.fromEntries(names) } };
}

/** Resource attribute with the time at which the import began that delivered the records: milliseconds since 1970 as decimal digits. Nobody is notified of runs that had ended by then. */
export const IMPORT_ATTRIBUTE = 'run_bridge.import.began_unix_ms';

/** Returns when the import of a resource's records began; `null` if they were not imported. */
export function importBeganUnixMs({ attributes }: Resource): number | null {
  const value = attributes[IMPORT_ATTRIBUTE];
  return typeof value === 'string' && /^\d{1,15}$/.test(value) ? Number(value) : null;
}

/** Returns the resource with the time of an import. */
export function asImported(resource: Resource, beganUnixMs: number): Resource {
  return { ...resource, attributes: { ...resource.attributes, [IMPORT_ATTRIBUTE]: String(beganUnixMs) } };
}

/** Returns the resource without the time of an import. */
export function withoutImport(resource: Resource): Resource {
  const { [IMPORT_ATTRIBUTE]: _began, ...attributes } = resource.attributes;
  return { ...resource, attributes };
}

/**
 * Resource attribute with the id of the step whose command sent the records. `exec` puts it into `OTEL_RESOURCE_ATTRIBUTES`, which distinguishes commands that share a trace from their first record
 * on.
 */
export const STEP_ATTRIBUTE = 'run_bridge.step.id';

/** Returns the step that a resource names; `null` if it names none. */
export function stepIdOf({ attributes }: Resource): string | null {
  const value = attributes[STEP_ATTRIBUTE];
  return typeof value === 'string' && value !== '' ? value : null;
}

/** Returns the text by which a command of a step, and all processes that it starts, are recognised in their environment: the end of `OTEL_RESOURCE_ATTRIBUTES`. */
export function stepInEnvironment(stepId: string): string {
  return `${STEP_ATTRIBUTE}=${stepId}\0`;
}
