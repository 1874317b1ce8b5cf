import { ALL_FIELDS, EVENT_TYPE_PREFIX, EVENTS } from '../record/event-table.js';
import { eventTypeByName } from './attribute-schema.js';
import { BRIDGE_ATTRIBUTE } from './bridge-attributes.js';
import type { AnyValue, KeyValue, KeyValueList, OtlpLogRecord, OtlpSpan } from './export-request.js';

/** Names of the engine's builds, as service or as scope: `dbt` and `dbt-oss`, and those before 2.0.0. */
export const ENGINE_NAMES = ['dbt', 'dbt-oss', 'dbt-core', 'dbt-fusion', 'dbt-tracing'] as const;

/** The service and scope that telemetry came under. */
export interface TelemetryNames {
  /** `service.name` of the resource; empty for none. */
  readonly service: string;
  readonly scope: string;
}

/**
 * What a resource and a scope say of whose their records are. `engine` and `other` are final. Else each record decides: it is
 * the engine's `unlessOlder` (it is no span of dbt 1.x), `ifNamed` (it is named as the engine names its own), or
 * `ifShaped` (it has the name and the attributes of an event of the engine; `OrWait`: waits may have no attribute).
 */
export type Origin = 'engine' | 'other' | 'unlessOlder' | 'ifNamed' | 'ifShaped' | 'ifShapedOrWait';

/** One span or log record, as far as it says whose it is. */
export interface NamedItem {
  /** A span's name, or a log record's event name. */
  readonly name: string;
  /** Read only where names of service and scope do not decide. */
  attributes(): readonly NamedAttribute[];
}

/** An attribute of an item. */
export interface NamedAttribute {
  readonly key: string;
  /** `undefined` for anything but a text. */
  readonly text: string | undefined;
}

/**
 * Decides which telemetry is the engine's. Everything that receives OTLP asks it, so that there is one rule: a known name as
 * service or scope; where no name is known, names and attributes of the items. A name alone may be that of dbt 1.x under an agent of OpenTelemetry,
 * which is a Python program: the language of the SDK tells, and where that was left out on the way, names of spans.
 */
export class EngineRecognition {
  private readonly names: ReadonlySet<string>;

  /** @param moreNames those of the setting `engine-names` */
  constructor(moreNames: readonly string[] = []) {
    this.names = new Set([...ENGINE_NAMES, ...moreNames]);
  }

  /** @param resource attributes of the resource */
  originOf(resource: readonly KeyValue[], names: TelemetryNames): Origin {
    if (isMapped(resource)) return 'other';
    const language = attributeOf(resource, 'telemetry.sdk.language');
    if (language !== undefined && language !== ENGINE_LANGUAGE) return 'other';
    const isScopeKnown = this.names.has(names.scope);
    const isEngineLanguage = language === ENGINE_LANGUAGE;
    if (!isScopeKnown && !this.names.has(names.service)) return isEngineLanguage ? 'ifShapedOrWait' : 'ifShaped';
    if (isEngineLanguage) return 'engine';
    return isScopeKnown ? 'unlessOlder' : 'ifNamed';
  }

  /** Whether an item is the engine's, by itself: it must not matter with which others it travels. */
  isOfEngine(origin: Origin, signal: 'traces' | 'logs', item: NamedItem): boolean {
    if (origin === 'engine' || origin === 'other') return origin === 'engine';
    const { name } = item;
    const attributes = item.attributes();
    if (attributes.some(({ key }) => BRIDGE_KEYS.has(key))) return true;
    if (signal === 'logs') {
      if (ENGINE_EVENT.test(name)) return true;
      if (attributes.some(({ key }) => LIBRARY_KEY.test(key))) return false;
      return origin === 'unlessOlder' || attributes.some((one) => LOG_KEYS.has(one.key) || isEngineEnum(one));
    }
    const eventType = eventTypeByName(name);
    if (eventType === undefined) {
      if (attributes.some(isEngineEnum)) return true;
      // dbt 1.x sends no log records, and in its process libraries record spans.
      return origin === 'unlessOlder' && !OLDER_SPAN.test(name) && !attributes.some(({ key }) => LIBRARY_KEY.test(key));
    }
    if (origin === 'unlessOlder' || origin === 'ifNamed') return true;
    return isShaped(eventType, name, attributes) || (origin === 'ifShapedOrWait' && WAIT.test(name));
  }

  /** Whether a service or a scope is called as the engine is, or begins so. */
  hasSign({ service, scope }: TelemetryNames): boolean {
    return [service, scope].some((name) => ENGINE_LIKE.test(name) || this.names.has(name));
  }
}

/** Whether a span or log record has an attribute as none but the engine has, anywhere in it, or an event name like the engine's. */
export function isSignedItem(item: OtlpSpan | OtlpLogRecord): boolean {
  if (hasSignAmong(item.attributes)) return true;
  if ('body' in item) return LIKE_EVENT.test(item.eventName) || hasSignIn(item.body);
  return [...item.events, ...item.links].some(({ attributes }) => hasSignAmong(attributes));
}

/** Whether one of these attributes, or one within them, is called as none but the engine's, or as those with its statements, or has a value of the engine's enums. */
export function hasSignAmong(attributes: readonly KeyValue[]): boolean {
  if (attributes.some(isSign)) return true;
  return SIGN_PAIR.every((name) => attributes.some(({ key }) => key === name));
}

/** The same of one attribute. */
export function isSign({ key, value }: KeyValue): boolean {
  if (SIGN_KEYS.has(key) || ENGINE_LIKE.test(key)) return true;
  return typeof value === 'string' ? isEngineEnum({ key, text: value }) : hasSignIn(value);
}

function hasSignIn(value: AnyValue): boolean {
  if (value === null || typeof value !== 'object' || value instanceof Uint8Array) return false;
  return isKeyValueList(value) ? hasSignAmong(value.entries) : value.some(hasSignIn);
}

/** Whether a value of several is a map. */
export function isKeyValueList(value: readonly AnyValue[] | KeyValueList): value is KeyValueList {
  return !Array.isArray(value);
}

/** Says of JSON whether there may be a sign in it, as a pattern. */
export function signPattern(): string {
  const keys = [...SIGN_KEYS, ...SIGN_PAIR, ...ENUM_BEGINNINGS.keys()].join('|');
  return `"dbt|"(?:${keys})"|"v\\d+\\.(?:\\w+\\.)?events\\.`;
}

/** Whether a bridge has mapped these records already: another one's exports are passed on as they are. */
export function isMapped(resource: readonly KeyValue[]): boolean {
  return attributeOf(resource, 'telemetry.distro.name') === 'run-bridge';
}

/** A span or log record as `isOfEngine` asks of it. */
export function namedItem(item: OtlpSpan | OtlpLogRecord): NamedItem {
  const attributes = () =>
    item.attributes.map(({ key, value }) => ({ key, text: typeof value === 'string' ? value : undefined }));
  return { name: 'body' in item ? item.eventName : item.name, attributes };
}

/** The names of a resource and a scope. */
export function namesOf(resource: readonly KeyValue[], scope: string): TelemetryNames {
  const service = attributeOf(resource, 'service.name');
  return { service: typeof service === 'string' ? service : '', scope };
}

const ENGINE_LIKE = /^dbt/i;
/** What `telemetry.sdk.language` of the engine says. */
const ENGINE_LANGUAGE = 'rust';
/** Spans of dbt 1.x: `dbt.invocation`, `metadata.setup`, a bare `model.shop.orders`, hooks. The engine's own names have brackets or a first word without dots. */
const OLDER_SPAN = /^(?:[^\s(:]+\.\S.*|on-run-(?:start|end)|hook_span|dbt invocation)$/;
/** Attributes of OpenTelemetry's conventions, as libraries set them in the process of dbt 1.x. */
const LIBRARY_KEY = /^(?:db|http|url|net|server|rpc|messaging|code)\./;
/** The engine's event names, of public events and others, whatever it is called next. */
const ENGINE_EVENT = /^v\d+\.(?:public\.events\.\w+|(?:\w+\.)?events\.(?:fusion|dbt\w*))\./;
/** What may be one of these, whatever they will be called. */
const LIKE_EVENT = /^v\d+\.(?:\w+\.)?events\.\w+\./;
/** Attributes with statements, or with what else the project says, that are called as the engine's. */
const SIGN_KEYS: ReadonlySet<string> = new Set([
  ...['sql', 'unique_id', 'raw_command', 'eval_args', 'self_value', 'other_value', 'node_type_or_category'],
  'query_error_adapter_message',
]);
/** Together they are the engine's. */
const SIGN_PAIR = ['content', 'output_format'] as const;
/** Attributes of log records that nobody else has; a Collector that does not know of event names drops those. */
const LOG_KEYS: ReadonlySet<string> = new Set([
  'dbt_core_event_code',
  'original_severity_number',
  'original_severity_text',
]);
/** Attributes with which another bridge says what a record was. */
const BRIDGE_KEYS: ReadonlySet<string> = new Set([BRIDGE_ATTRIBUTE.eventType, BRIDGE_ATTRIBUTE.record]);

function attributeOf(attributes: readonly KeyValue[], name: string): AnyValue | undefined {
  return attributes.find(({ key }) => key === name)?.value;
}

/** How values of enums begin, by attribute: as the schema's zero of it does, else as it is called. */
const ENUM_BEGINNINGS: ReadonlyMap<string, readonly RegExp[]> = enumBeginnings();

function enumBeginnings(): ReadonlyMap<string, readonly RegExp[]> {
  const zeros = new Map<string, RegExp[]>();
  for (const [name, { kind, zero }] of ALL_FIELDS) {
    if (kind !== 'enum') continue;
    const known = zeros.get(name) ?? [];
    zeros.set(name, known);
    if (typeof zero === 'string') known.push(new RegExp(`^${zero.replace(/UNSPECIFIED$/, '')}[A-Z0-9]`));
  }
  return new Map(
    [...zeros].map(([name, known]) => {
      const byName = [new RegExp(`^(?:[A-Z]+_)?${name.toUpperCase()}_[A-Z0-9]`)];
      return [name, known.length > 0 ? known : byName];
    }),
  );
}

/** Whether it is an enum of the engine's schema, spelt as that spells it: `node_type` is `NODE_TYPE_MODEL`, where dbt 1.x says `model`. */
function isEngineEnum({ key, text }: NamedAttribute): boolean {
  return text !== undefined && (ENUM_BEGINNINGS.get(key)?.some((beginning) => beginning.test(text)) ?? false);
}

/** Waits, which may have no attribute. Other programs wait for threads, too. */
const WAIT = /^(?:Thread pool wait|Connection limit wait(?: \(\d+ active \w+\))*)$/;
const OWN_WAIT = 'Connection limit wait';

/** What spans of events without enums have at least; those that are not here may have nothing. */
const DEMANDED: ReadonlyMap<string, readonly string[]> = new Map(
  Object.entries({
    'dev.CallTrace': ['name'],
    'dev.Unknown': ['name', 'file', 'line'],
    'generic.GenericOpExecuted': ['operation_id', 'display_action'],
    'generic.GenericOpItemProcessed': ['operation_id', 'target'],
    'deps.DepsAllPackagesInstalled': ['package_count'],
    'update.PackageUpdate': ['version', 'package'],
    'invocation.Invocation': ['invocation_id', 'raw_command'],
    'process.Process': ['package', 'version', 'host_os', 'host_arch'],
  }).map(([name, keys]) => [EVENT_TYPE_PREFIX + name, keys]),
);

/** Whether a span with a name of this event has what the engine gives it: its enums, or else what makes it. */
function isShaped(eventType: string, name: string, attributes: readonly NamedAttribute[]): boolean {
  const fields = EVENTS.get(eventType)?.fields ?? {};
  const enums = Object.keys(fields).filter((key) => fields[key]?.kind === 'enum');
  const demanded = enums.filter((key) => fields[key]?.zero !== undefined);
  if (enums.length > 0) {
    const found = attributes.filter(isEngineEnum);
    return found.length > 0 && demanded.every((key) => found.some((one) => one.key === key));
  }
  const keys = DEMANDED.get(eventType);
  if (keys !== undefined) return keys.every((key) => attributes.some((one) => one.key === key));
  return name === OWN_WAIT || (WAIT.test(name) && attributes.some(({ key }) => fields[key] !== undefined));
}
