import { accountOfStep, type Resource, UNKNOWN_RESOURCE } from '../record/attributes.js';
import type { SpanId, TraceId, UnixNano } from '../record/telemetry-record.js';
import type { ExecutionStore } from '../storage/execution-store.js';
import type { StepRow } from '../storage/executions.js';
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

  /** Returns where its last record ends in the record log. */
  get endOffset(): number {
    return this.groups.reduce((most, group) => Math.max(most, group.endOffset), 0);
  }

  get lastArrivalMs(): number {
    return this.groups.reduce((latest, group) => Math.max(latest, group.lastArrivalMs), Number.NEGATIVE_INFINITY);
  }

  /** Of the invocation's group; without an invocation span, of the first record. */
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

  /** Returns the step that its resource names; `null` where it names none. */
  get stepId(): string | null {
    return this.groups.find((group) => group.stepId !== null)?.stepId ?? null;
  }

  /** Returns the group that it was made of. */
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

  /** Returns whether it may have been running at these times: bounded by its process span, else by its invocation span. */
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

/** What is asked of an execution store about a trace. */
export type StepReader = Pick<ExecutionStore, 'stepsOf' | 'findStep' | 'attach'>;

/** Steps that one trace's resources name and that are looked up at a time; a trace of an orchestrator has dozens. */
const MAX_LOOKED_UP = 200;
/** The first record of a command may have a timestamp this much after its reported end: clocks are read one after the other. */
const SLACK_NANO = 1_000_000_000n;
const NANO_PER_MS = 1_000_000n;

/** Steps as one text, each once, independent of their order. */
export function namesOf(stepIds: Iterable<string>): string {
  return [...new Set(stepIds)].toSorted().join(' ');
}

/** The steps of the records in a trace. */
export class TraceSteps {
  private steps: ReadonlyMap<string, StepRow> = new Map();
  private isStale = true;

  constructor(
    private readonly traceId: TraceId,
    private readonly reader: StepReader | undefined,
  ) {}

  /** Returns whether none is known. */
  get isEmpty(): boolean {
    return this.steps.size === 0;
  }

  /** Returns the known steps, as one text. */
  get names(): string {
    return namesOf(this.steps.keys());
  }

  /** They have changed since they were read. */
  markStale(): void {
    this.isStale = true;
  }

  /**
   * Reads changes. A step that a resource names and that is not attached to the trace is attached.
   * @param stepIds named by the trace's resources
   */
  async refresh(stepIds: Iterable<string>): Promise<void> {
    if (this.reader === undefined) return;
    if (this.isStale) {
      this.isStale = false;
      const rows = await this.reader.stepsOf(this.traceId);
      this.steps = new Map(rows.map((step) => [step.stepId, step]));
    }
    let lookedUpCount = 0;
    for (const stepId of stepIds) {
      if (this.steps.has(stepId)) continue;
      lookedUpCount += 1;
      if (lookedUpCount > MAX_LOOKED_UP) return;
      // Checked first: another bridge may have attached it already, and attaching is a write.
      if ((await this.reader.findStep(stepId)) === undefined) continue;
      await this.reader.attach(stepId, this.traceId);
      const step = await this.reader.findStep(stepId);
      if (step !== undefined) this.steps = new Map([...this.steps, [stepId, step]]);
    }
  }

  /**
   * Returns the step of an invocation: the one that its resource names, else the only one that was running at its start.
   * @param stepId named by its resource; `null` for none
   * @param accountId of the invocation; steps of other accounts do not match
   */
  stepOf(stepId: string | null, startTimeUnixNano: UnixNano, accountId: number | null): StepRow | undefined {
    const own = (step: StepRow) => accountOfStep(step.stepId) === accountId;
    if (stepId !== null) return [this.steps.get(stepId)].find((step) => step !== undefined && own(step));
    const possible = [...this.steps.values()].filter((step) => own(step) && mayHaveBegun(step, startTimeUnixNano));
    return possible.length === 1 ? possible[0] : undefined;
  }
}

function mayHaveBegun({ startedUnixMs, endedUnixMs }: StepRow, time: UnixNano): boolean {
  if (time < BigInt(Math.floor(startedUnixMs)) * NANO_PER_MS - SLACK_NANO) return false;
  return endedUnixMs === null || time <= BigInt(Math.ceil(endedUnixMs)) * NANO_PER_MS + SLACK_NANO;
}
