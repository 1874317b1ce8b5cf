import type { TraceId } from '../record/ids.js';
import { accountOfStep } from '../record/resource.js';
import type { UnixNano } from '../record/unix-nano.js';
import type { ExecutionStore, StepRow } from '../storage/execution-store.js';

/** What is asked of an execution store about a trace. */
export type StepReader = Pick<ExecutionStore, 'stepsOf' | 'findStep' | 'attach'>;

/** Steps that one trace's resources name and that are looked up at a time; a trace of an orchestrator has dozens. */
const MAX_LOOKED_UP = 200;
/** A command's first record may be stamped so much after the end that was told of it: clocks are read one after the other. */
const SLACK_NANO = 1_000_000_000n;
const NANO_PER_MS = 1_000_000n;

/** Steps as one text, each once, whatever their order. */
export function namesOf(stepIds: Iterable<string>): string {
  return [...new Set(stepIds)].toSorted().join(' ');
}

/** The steps that a trace holds records of, as they are known now. */
export class TraceSteps {
  private steps: ReadonlyMap<string, StepRow> = new Map();
  private isStale = true;

  constructor(
    private readonly traceId: TraceId,
    private readonly reader: StepReader | undefined,
  ) {}

  /** Whether none is known. */
  get isEmpty(): boolean {
    return this.steps.size === 0;
  }

  /** Which are known, as one text. */
  get names(): string {
    return namesOf(this.steps.keys());
  }

  /** More is known of them than was read. */
  markStale(): void {
    this.isStale = true;
  }

  /**
   * Reads what is new. A step that a resource names and that nobody attached to the trace is attached.
   * @param stepIds those that the trace's resources name
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
      // Asked first: another bridge may have passed on what it was told of, and an attempt to attach is a write.
      if ((await this.reader.findStep(stepId)) === undefined) continue;
      await this.reader.attach(stepId, this.traceId);
      const step = await this.reader.findStep(stepId);
      if (step !== undefined) this.steps = new Map([...this.steps, [stepId, step]]);
    }
  }

  /**
   * The step of an invocation: the one that its resource names, else the only one that was under way when it began.
   * @param stepId that its resource names; `null` for none
   * @param accountId whose the invocation is; a step of another account's is none of its
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
