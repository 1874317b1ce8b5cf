import { type Resource, UNKNOWN_RESOURCE } from '../record/attributes.js';
import type { SpanId } from '../record/ids.js';
import type { UnixNano } from '../record/unix-nano.js';
import type { RootSpan, SpanGroup } from './span-group.js';

/** One invocation of a trace: its groups of spans. Created anew for each use. */
export class InvocationParts {
  /** The group that it was made of first, then those that were found to belong to it. */
  readonly groups: [SpanGroup, ...SpanGroup[]];
  process: RootSpan | null = null;
  isAmbiguous = false;

  /**
   * @param spanId id of the invocation span; `null` if unknown.
   * @param invocation the span itself, if its record arrived.
   */
  constructor(
    readonly spanId: SpanId | null,
    readonly invocation: RootSpan | null,
    group: SpanGroup,
  ) {
    this.groups = [group];
  }

  get hasInvocationEnd(): boolean {
    return this.invocation !== null && this.invocation.endTimeUnixNano !== null;
  }

  get hasProcessEnd(): boolean {
    return this.process !== null && this.process.endTimeUnixNano !== null;
  }

  get outerParentSpanId(): SpanId | null {
    return this.invocation?.outerParentSpanId ?? this.process?.outerParentSpanId ?? null;
  }

  // By loops: there may be more groups than a call may have arguments.

  get firstOffset(): number {
    return this.groups.reduce((least, group) => Math.min(least, group.firstOffset), Number.MAX_SAFE_INTEGER);
  }

  /** Where its last record ends in the record log. */
  get endOffset(): number {
    return this.groups.reduce((most, group) => Math.max(most, group.endOffset), 0);
  }

  get lastArrivalMs(): number {
    return this.groups.reduce((latest, group) => Math.max(latest, group.lastArrivalMs), Number.NEGATIVE_INFINITY);
  }

  /** Of the invocation's own group; without an invocation span, of the first record. */
  get resource(): Resource {
    const [own] = this.groups;
    if (this.spanId !== null && own.resource !== null) return own.resource;
    let first: SpanGroup | undefined;
    // Not the first of the list: the order of groups depends on how the records were batched.
    for (const group of this.groups) {
      if (group.resource !== null && (first === undefined || group.firstOffset < first.firstOffset)) first = group;
    }
    return first?.resource ?? UNKNOWN_RESOURCE;
  }

  /** The step that its resource names; `null` where it names none. */
  get stepId(): string | null {
    return this.groups.find((group) => group.stepId !== null)?.stepId ?? null;
  }

  /** The group that it was made of. */
  get own(): SpanGroup {
    return this.groups[0];
  }

  /** Earliest start among its records. */
  get startTimeUnixNano(): UnixNano {
    return extreme(
      this.groups.map((group) => group.startTimeUnixNano),
      (a, b) => a < b,
    );
  }

  /** Latest end, or time, among its records. */
  get endTimeUnixNano(): UnixNano {
    return extreme(
      this.groups.map((group) => group.endTimeUnixNano),
      (a, b) => a > b,
    );
  }

  /** Whether it may have been running at these times: bounded by its process span, else by its invocation span. */
  mayEnclose(startTimeUnixNano: UnixNano, endTimeUnixNano: UnixNano): boolean {
    const root = this.process ?? this.invocation;
    const start = root?.startTimeUnixNano ?? this.own.startTimeUnixNano ?? 0n;
    const end = this.process?.endTimeUnixNano ?? this.invocation?.endTimeUnixNano ?? null;
    return start <= startTimeUnixNano && (end === null || endTimeUnixNano <= end);
  }
}

function extreme(times: readonly (UnixNano | null)[], isBetter: (a: UnixNano, b: UnixNano) => boolean): UnixNano {
  let best: UnixNano | null = null;
  for (const time of times) if (time !== null && (best === null || isBetter(time, best))) best = time;
  return best ?? 0n;
}
