import { EVENT_TYPE_PREFIX, EVENTS, type FieldRow } from '../record/event-table.js';
import { eventTypeByName } from './attribute-schema.js';
import { BRIDGE_ATTRIBUTE } from './bridge-attributes.js';
import type { AnyValue, KeyValue } from './export-request.js';

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
 * `ifShaped` (it has the name and the attributes of an event of the engine).
 */
export type Origin = 'engine' | 'other' | 'unlessOlder' | 'ifNamed' | 'ifShaped';

/** One span or log record, as far as it says whose it is. */
export interface NamedItem {
  /** A span's name, or a log record's event name. */
  readonly name: string;
  /** Read for what has a telling name only. */
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
    if (!isScopeKnown && !this.names.has(names.service)) return 'ifShaped';
    if (language === ENGINE_LANGUAGE) return 'engine';
    return isScopeKnown || names.scope === '' ? 'unlessOlder' : 'ifNamed';
  }

  /** Whether an item is the engine's, by itself: it must not matter with which others it travels. */
  isOfEngine(origin: Origin, signal: 'traces' | 'logs', item: NamedItem): boolean {
    switch (origin) {
      case 'engine':
        return true;
      case 'other':
        return false;
      case 'unlessOlder':
        // dbt 1.x sends no log records.
        return signal === 'logs' || !OLDER_SPAN.test(item.name);
      case 'ifNamed':
        return signal === 'traces' ? isNamedSpan(item) : isEngineLog(item);
      case 'ifShaped':
        return signal === 'traces' ? isEngineSpan(item) : isEngineLog(item);
    }
  }

  /** Whether a service or a scope is called as the engine is, or begins so. */
  hasSign({ service, scope }: TelemetryNames): boolean {
    return [service, scope].some((name) => ENGINE_LIKE.test(name) || this.names.has(name));
  }
}

/** Whether an attribute is called as none but the engine's, or as those with its statements. */
export function isSignOfEngine(key: string): boolean {
  return key === 'sql' || key === 'unique_id' || ENGINE_LIKE.test(key);
}

/** Whether a bridge has mapped these records already: another one's exports are passed on as they are. */
export function isMapped(resource: readonly KeyValue[]): boolean {
  return attributeOf(resource, 'telemetry.distro.name') === 'run-bridge';
}

/** The names of a resource and a scope. */
export function namesOf(resource: readonly KeyValue[], scope: string): TelemetryNames {
  const service = attributeOf(resource, 'service.name');
  return { service: typeof service === 'string' ? service : '', scope };
}

const ENGINE_LIKE = /^dbt/i;
/** What `telemetry.sdk.language` of the engine says. */
const ENGINE_LANGUAGE = 'rust';
/** Spans of dbt 1.x: `dbt.invocation`, `metadata.setup`, a bare `model.shop.orders`, hooks. The engine's own names have blanks or brackets. */
const OLDER_SPAN = /^(?:[^\s(:]+\.[^\s(]+|on-run-(?:start|end)|hook_span|dbt invocation)$/;
/** The engine's event names, of public events and others. */
const ENGINE_EVENT = /^v\d+\.(?:public\.)?events\.fusion\./;
/** An enum's value as the engine spells it: `NODE_TYPE_MODEL`. */
const ENUM_VALUE = /^[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+$/;
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

function isNamedSpan({ name }: NamedItem): boolean {
  return eventTypeByName(name) !== undefined;
}

/** Waits, which may have no attribute. */
const WAITS: ReadonlySet<string> = new Set(
  ['query.ConnectionLimitWait', 'process.ThreadPoolWait'].map((name) => EVENT_TYPE_PREFIX + name),
);
/** Has whatever its place in the code has noted. */
const CALL_TRACE = `${EVENT_TYPE_PREFIX}dev.CallTrace`;

/** A span with a name that the engine makes, and with attributes of that event. */
function isEngineSpan({ name, attributes }: NamedItem): boolean {
  const eventType = eventTypeByName(name);
  if (eventType === undefined) return false;
  const fields = EVENTS.get(eventType)?.fields ?? {};
  const list = attributes();
  if (list.length === 0 && WAITS.has(eventType)) return true;
  if (list.some(({ key }) => BRIDGE_KEYS.has(key))) return true;
  const known = list.flatMap(({ key, text }): (readonly [FieldRow, string | undefined])[] => {
    const row = fields[key];
    return row === undefined ? [] : [[row, text]];
  });
  const enums = known.filter(([{ kind }]) => kind === 'enum');
  if (enums.length > 0) return enums.every(([, text]) => text !== undefined && ENUM_VALUE.test(text));
  // Beside one of its own, others may have been added on the way.
  if (eventType === CALL_TRACE) return known.length > 0;
  return known.length === list.length ? known.length > 0 : known.length >= 2 && known.length * 2 >= list.length;
}

function isEngineLog({ name, attributes }: NamedItem): boolean {
  if (name !== '') return name.startsWith(EVENT_TYPE_PREFIX) || ENGINE_EVENT.test(name);
  return attributes().some(({ key }) => LOG_KEYS.has(key) || BRIDGE_KEYS.has(key));
}
