import type { Attributes as OtelAttributes } from '@opentelemetry/api';
import { isJsonObject, type JsonObject, type JsonValue } from '../../record/attributes.js';
import { ALL_FIELDS, EVENTS } from '../../record/event-table.js';
import type { Redactor } from '../../redaction/redactor.js';

/** Full names of the messages that the mapping treats in a way of their own. */
export const EVENT_TYPE = {
  invocation: 'v1.public.events.fusion.invocation.Invocation',
  process: 'v1.public.events.fusion.process.Process',
  nodeProcessed: 'v1.public.events.fusion.node.NodeProcessed',
  nodeEvaluated: 'v1.public.events.fusion.node.NodeEvaluated',
  microbatchEvaluated: 'v1.public.events.fusion.node.MicrobatchEvaluated',
  hookProcessed: 'v1.public.events.fusion.hook.HookProcessed',
  queryExecuted: 'v1.public.events.fusion.query.QueryExecuted',
} as const;

/** The last part of a message's full name, for example `LogMessage`; `log` for none. */
export function shortEventType(eventType: string): string {
  const short = eventType.slice(eventType.lastIndexOf('.') + 1);
  return short === '' ? 'log' : short;
}

/**
 * A span's name without what changes from run to run: ids, counts, versions, locations in the engine's source. One series
 * in span metrics is then one thing, whatever run it comes from.
 * @param command the invocation's command, for example `build`, where it is known.
 */
export function stableSpanName(name: string, eventType: string, command: string | undefined): string {
  if (eventType === EVENT_TYPE.invocation) {
    const stable = name.replace(/ \([^)]*\)$/, '');
    return command === undefined ? stable : `${stable} (${command})`;
  }
  const stable = stableNameOf(eventType);
  if (stable === true) return name;
  return stable === undefined ? name.replace(UUID, '*').replace(COUNTS, '') : name.replace(...stable);
}

function stableNameOf(eventType: string) {
  return EVENTS.get(eventType)?.span?.stableName;
}

/** Returns whether the names of such spans contain nothing that changes from run to run, or might be a value. */
export function isStableName(eventType: string): boolean {
  return stableNameOf(eventType) === true;
}

/** Returns whether a span's name contains only names, counts and ids, so that redaction may show it. */
export function isStructuralName(eventType: string): boolean {
  return stableNameOf(eventType) !== undefined || eventType === EVENT_TYPE.invocation;
}

const UUID = /[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}/gi;
const COUNTS = / \([^()]*\b\d+\b[^()]*\)$/;

/**
 * Details whose fields become attributes of the span itself, under the field's own name, with the values that proto3
 * leaves out of JSON because they are zero, though they say something.
 */
const LIFTED: ReadonlyMap<string, OtelAttributes> = new Map(
  ALL_FIELDS.flatMap(([name, { lifted }]) => (lifted === undefined ? [] : [[name, lifted] as const])),
);

/** Deepest nesting that becomes attributes; what lies deeper is one JSON text. The schema's own messages have three levels. */
const MAX_DEPTH = 4;

/** Deepest nesting inside such a text; what lies deeper is `…`, so that hostile input cannot exhaust the stack. */
const MAX_JSON_DEPTH = 64;

/**
 * Writes a message's fields into attributes: scalars under their name, nested ones under dotted names (or their own name
 * where they are details of the span), lists of scalars as lists, the rest as JSON text; 64-bit integers as numbers.
 * Statements (`sql`) are not written here.
 * @param eventType what the message is. @param isLifted false keeps each nested object as one JSON text, as the engine's OTLP does.
 */
export function flattenAttributes(
  message: JsonObject,
  eventType: string,
  into: OtelAttributes,
  redactor: Redactor,
  isLifted: boolean,
): void {
  new Flattening(eventType, into, redactor, isLifted).object(message, '', '', 0);
}

class Flattening {
  constructor(
    private readonly eventType: string,
    private readonly into: OtelAttributes,
    private readonly redactor: Redactor,
    private readonly isLifted: boolean,
  ) {}

  object(object: JsonObject, prefix: string, parent: string, depth: number): void {
    for (const field in object) {
      const value = object[field];
      if (value !== undefined && value !== null && (depth > 0 || field !== 'sql')) {
        this.value(value, prefix + field, field, parent, depth);
      }
    }
  }

  private value(value: Exclude<JsonValue, null>, key: string, field: string, parent: string, depth: number): void {
    if (typeof value === 'string') {
      this.into[key] = isInt64Field(field, parent)
        ? int64Value(value)
        : this.redactor.attribute(key, value, this.eventType);
    } else if (typeof value === 'boolean') {
      this.into[key] = value;
    } else if (typeof value === 'number') {
      const shown = this.redactor.number(key, value, this.eventType);
      if (shown !== undefined && !(field === 'query_error_vendor_code' && value === NO_VENDOR_CODE))
        this.into[key] = shown;
    } else if (!isJsonObject(value)) {
      this.list(value, key);
    } else if (this.isLifted && depth < MAX_DEPTH) {
      const defaults = depth === 0 ? LIFTED.get(key) : undefined;
      if (defaults !== undefined) Object.assign(this.into, defaults);
      this.object(value, defaults === undefined ? `${key}.` : '', field, depth + 1);
    } else {
      this.into[key] = this.json(value, key);
    }
  }

  private list(list: readonly JsonValue[], key: string): void {
    const texts: string[] = [];
    for (const item of list) {
      if (typeof item !== 'string') {
        this.into[key] = this.json(list, key);
        return;
      }
      texts.push(this.redactor.attribute(key, item, this.eventType));
    }
    this.into[key] = texts;
  }

  /** JSON text, each text in it redacted as an attribute of that name would be. */
  private json(value: JsonValue, key: string): string {
    return JSON.stringify(this.redacted(value, key, 0));
  }

  private redacted(value: JsonValue, key: string, depth: number): JsonValue {
    if (typeof value === 'string') return this.redactor.attribute(key, value, this.eventType);
    if (typeof value === 'number') return this.redactor.number(key, value, this.eventType) ?? '?';
    if (value === null || typeof value === 'boolean') return value;
    if (depth >= MAX_JSON_DEPTH) return '…';
    if (!isJsonObject(value)) return value.map((item) => this.redacted(item, key, depth + 1));
    return Object.fromEntries(
      Object.entries(value).map(([field, item]) => [
        field,
        this.redacted(item, this.redactedKey(key, field), depth + 1),
      ]),
    );
  }

  /** The key that a field has when its object is flattened, so that both have one policy. */
  private redactedKey(key: string, field: string): string {
    return LIFTED.has(key) ? field : `${key}.${field}`;
  }
}

/** The engine's "there is none". */
export const NO_VENDOR_CODE = -2_147_483_648;

/** 64-bit integers, which JSON carries as strings; exported as OTel's int. Ids (`parent_span_id`) are left as text. */
const INT64_FIELDS: ReadonlySet<string> = new Set(
  ALL_FIELDS.flatMap(([name, { kind }]) => (kind === 'int64' && !name.endsWith('_id') ? [name] : [])),
);

/** Maps whose values are 64-bit integers. */
const INT64_MAPS: ReadonlySet<string> = new Set(
  ALL_FIELDS.flatMap(([name, { entries }]) => (entries === 'int64' ? [name] : [])),
);

/** Returns whether a string at this field is a 64-bit integer. @param parent the field that holds it, for the entries of maps. */
export function isInt64Field(field: string, parent: string): boolean {
  return INT64_FIELDS.has(field) || INT64_MAPS.has(parent);
}

/** The integer that a string spells; the string itself beyond what a double holds exactly. */
export function int64Value(text: string): number | string {
  const value = Number(text);
  return Number.isSafeInteger(value) && text !== '' ? value : text;
}

/**
 * Names of attributes that are put together with others before they are written, since the mapping writes such names
 * itself, or because JavaScript's objects put them first.
 */
const SPECIAL_NAME =
  /^(?:event_type|error\.type|__proto__|\d+|run_bridge\..*|db\..*|test\..*|cicd\..*|body|severity_(?:text|number))$/;

/** Returns whether two attributes of an item may come to have this name. */
export function isSpecialName(name: string): boolean {
  return SPECIAL_NAME.test(name);
}
