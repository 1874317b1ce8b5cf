import type { ResourceValue } from '../record/attributes.js';
import type { RedactionLevel } from '../redaction/known-names.js';

/**
 * What the mapping does beyond copying records, each by default on and each with a switch of its own.
 * `docs/reference/mapping.md` shows them attribute by attribute.
 */
export const MAPPING_SWITCHES = {
  events:
    'log records become events of their span, too; `logs`: no span has any event, those that run-bridge makes are log records alone',
  verdicts:
    'failed nodes, tests, hooks and queries and stale sources are spans with status Error and an exception event, warned tests get an event, interrupted nodes say so whatever the engine reported, and a skipped node links to the node that caused it',
  attributes:
    "nested details become attributes of their own instead of JSON text, queries carry OTel's db.* attributes, and nodes their queries' time",
  names: 'span names lose what changes from run to run',
  gaps: 'spans that never ended, and those that never came but have children, are exported when their run is over',
} as const;

/** Name of one of the switches. */
export type MappingSwitch = keyof typeof MAPPING_SWITCHES;

/** Whether a switch is on; `events` may be `logs` as well. */
export type SwitchValue = boolean | 'logs';

/** Switches that are set, by name. */
export type SetSwitches = Readonly<Record<string, SwitchValue>>;

/** Every switch and whether it is on. */
export type MappingSwitches = Readonly<Record<Exclude<MappingSwitch, 'events'>, boolean>> & {
  readonly events: SwitchValue;
};

/** A switch as it is written in the configuration file. */
export function switchText(value: SwitchValue): string {
  if (value === 'logs') return value;
  return value ? 'on' : 'off';
}

/** Every switch at its default: on. */
export const DEFAULT_MAPPING_SWITCHES: MappingSwitches = mappingSwitchesFrom({});

/** The switches with those that are set differently; names that are no switch are passed over. */
export function mappingSwitchesFrom(set: SetSwitches): MappingSwitches {
  const names = Object.keys(MAPPING_SWITCHES);
  return Object.fromEntries(names.map((name) => [name, set[name] ?? true])) as MappingSwitches;
}

/** How one destination wants runs mapped. */
export interface MappingOptions {
  readonly switches: MappingSwitches;
  /** Default `literals`. */
  readonly redaction: RedactionLevel;
  /** Resource attributes that override the engine's: `OTEL_SERVICE_NAME` and `OTEL_RESOURCE_ATTRIBUTES` of the bridge. Default none. */
  readonly resourceOverrides: Readonly<Record<string, ResourceValue>>;
  /** Where others reach the pages, for links to runs; `null` if not configured. */
  readonly publicUrl: string | null;
  /** How long a span waits for its late events, in milliseconds of the records' own time. Default 2000. */
  readonly eventHoldMs: number;
  /** Spans that may wait at once; beyond, the oldest go out early. Default 8192. */
  readonly maxBufferedSpans: number;
  /** Events of one span; further ones are counted in its `droppedEventsCount` (they remain log records). Default 1000. */
  readonly maxEventsPerSpan: number;
  /** Events that may wait for their spans to end, over all spans; further ones are counted as dropped. Default 50,000. */
  readonly maxWaitingEvents: number;
  /**
   * Spans whose parent, state and node are remembered, the latest ones. Beyond: a late log of an older span makes no event, a
   * skipped node has no link to an older one, and an older span that never ended is not exported. Default 200,000.
   */
  readonly maxRememberedSpans: number;
}

/** Every option at its default. */
export const DEFAULT_MAPPING_OPTIONS: MappingOptions = {
  switches: DEFAULT_MAPPING_SWITCHES,
  redaction: 'literals',
  resourceOverrides: {},
  publicUrl: null,
  eventHoldMs: 2000,
  maxBufferedSpans: 8192,
  maxEventsPerSpan: 1000,
  maxWaitingEvents: 50_000,
  maxRememberedSpans: 200_000,
};
