import { accountOfStep } from '../record/attributes.js';
import type { TraceId } from '../record/ids.js';
import type { UnixNano } from '../record/unix-nano.js';
import type { ExecutionStore, StepRow } from '../storage/execution-store.js';

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

  /** Whether none is known. */
  get isEmpty(): boolean {
    return this.steps.size === 0;
  }

  /** The known steps, as one text. */
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
   * The step of an invocation: the one that its resource names, else the only one that was running at its start.
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
