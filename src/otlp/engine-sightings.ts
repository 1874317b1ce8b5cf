import { type Logger, silentLogger } from '../core/logger.js';
import type { Signal } from '../record/record-batch.js';
import type { TelemetryNames } from './engine-recognition.js';

/**
 * What was seen: `new`, the engine under a name that is not known; `passed`, telemetry that is passed on as another service's and
 * has a service, scope or attribute of the engine's.
 */
export type SightingKind = 'new' | 'passed';

/** One service or scope that was seen so. */
export interface Sighting extends TelemetryNames {
  readonly kind: SightingKind;
  /** Spans and log records. */
  readonly itemCount: number;
}

/** Names of a kind that are remembered and warned of; items of others are counted. */
const MAX_NAMES = 50;
/** A longer name is cut, in characters. */
const MAX_NAME_LENGTH = 120;

const MESSAGES: Readonly<Record<SightingKind, string>> = {
  new: 'took telemetry of the engine under a name that is not known; add it to engine-names if it stays',
  passed:
    "telemetry with a name or attributes of the engine's is passed on as another service's, its SQL redacted; if it is the engine's, add its scope or service to engine-names",
};

/** Counts telemetry of which it is not plain whose it is, and warns of each name once. */
export class EngineSightings {
  private readonly counts: Readonly<Record<SightingKind, Record<Signal, number>>> = {
    new: { traces: 0, logs: 0 },
    passed: { traces: 0, logs: 0 },
  };
  private readonly seen: Readonly<Record<SightingKind, Map<string, { -readonly [K in keyof Sighting]: Sighting[K] }>>> =
    {
      new: new Map(),
      passed: new Map(),
    };

  constructor(private readonly logger: Logger = silentLogger) {}

  note(kind: SightingKind, names: TelemetryNames, signal: Signal, itemCount: number): void {
    this.counts[kind][signal] += itemCount;
    const service = names.service.slice(0, MAX_NAME_LENGTH);
    const scope = names.scope.slice(0, MAX_NAME_LENGTH);
    const seen = this.seen[kind];
    const key = keyOf(kind, { service, scope });
    const known = seen.get(key);
    if (known !== undefined) known.itemCount += itemCount;
    else if (seen.size < MAX_NAMES) {
      seen.set(key, { kind, service, scope, itemCount });
      this.logger.warn({ service, scope }, MESSAGES[kind]);
    }
  }

  /** Spans or log records of this kind, since the start. */
  countOf(kind: SightingKind, signal: Signal): number {
    return this.counts[kind][signal];
  }

  /** What was seen since the start, of at most 50 names a kind. */
  list(): readonly Sighting[] {
    return [...this.seen.new.values(), ...this.seen.passed.values()];
  }
}

/** A new name is the scope's, which stays when a Collector renames the service; what is passed on is somebody's, whatever its libraries. */
function keyOf(kind: SightingKind, { service, scope }: TelemetryNames): string {
  const [first, second] = kind === 'new' ? [scope, service] : [service, scope];
  return first === '' ? ` ${second}` : first;
}
