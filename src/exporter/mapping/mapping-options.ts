import type { ResourceValue } from '../../record/resource.js';
import type { RedactionLevel } from '../redaction/redaction-level.js';
import { DEFAULT_MAPPING_SWITCHES, type MappingSwitches } from './mapping-switches.js';

/** How one destination wants runs mapped. */
export interface MappingOptions {
  readonly switches: MappingSwitches;
  /** Default `literals`. */
  readonly redaction: RedactionLevel;
  /** Resource attributes that override the engine's: `OTEL_SERVICE_NAME` and `OTEL_RESOURCE_ATTRIBUTES` of the bridge. Default none. */
  readonly resourceOverrides: Readonly<Record<string, ResourceValue>>;
  /** Where others reach the pages, for links to runs; `null` where nobody said. */
  readonly publicUrl: string | null;
  /** How long a span waits for its late events, in milliseconds of the records' own time. Default 2000. */
  readonly eventHoldMs: number;
  /** Spans that may wait at once; beyond, the oldest go out early. Default 8192. */
  readonly maxHeldSpans: number;
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
  maxHeldSpans: 8192,
  maxEventsPerSpan: 1000,
  maxWaitingEvents: 50_000,
  maxRememberedSpans: 200_000,
};
