import type { TraceId } from '../record/ids.js';
import type { RecordBatch } from '../record/record-batch.js';
import type { Delivery, RecordConsumer } from '../record/record-consumer.js';
import { STEP_ATTRIBUTE, stepIdOf } from '../record/step-attribute.js';
import type { TelemetryRecord } from '../record/telemetry-record.js';
import { eventName } from '../run/event-name.js';
import type { ExecutionBook } from '../run/execution-book.js';
import type { CommandEnding } from '../store/command-ending.js';
import type { StepStart } from '../store/step-start.js';
import { AttachingConsumer } from './attaching-consumer.js';

/** Where the records of a command go, and where its steps are told. */
export interface StepsTarget {
  readonly consumer: RecordConsumer;
  readonly book: Pick<ExecutionBook, 'begin' | 'attach'>;
}

/** One engine command of a command that may run several (make, a script). */
export interface CommandStep {
  readonly start: StepStart;
  readonly traceId: TraceId;
}

interface Step extends CommandStep {
  /** By its root spans; `null` until one has ended. */
  endedUnixMs: number | null;
  consumer: AttachingConsumer | undefined;
}

/** A command has so many steps at most; what further engine commands send is of its first. */
const MAX_STEPS = 1_000;
/** Enough of a trace's id to tell the commands of one script apart. */
const TRACE_ID_CHARACTERS = 16;
const NANO_PER_MS = 1_000_000n;

/**
 * Makes each engine command inside a command a step of its own, in the order in which their records come: the first is the
 * command's step, the further ones are told when they begin, and their records name them. Those that share a trace are one.
 */
export class CommandSteps implements RecordConsumer {
  private readonly ofTraces = new Map<TraceId, Step>();

  /** @param open gives where records go; asked whenever some come */
  constructor(
    private readonly open: () => Promise<StepsTarget>,
    private readonly start: StepStart,
  ) {}

  /** Those that are known, in their order. */
  get steps(): readonly CommandStep[] {
    return [...this.ofTraces.values()];
  }

  /** An engine command is known by its trace, before its records are handed over. */
  note(traceId: TraceId): void {
    this.stepOf(traceId, []);
  }

  async consume({ batches, foreign }: Delivery): Promise<void> {
    const ofSteps = new Map<Step, RecordBatch[]>();
    const others: RecordBatch[] = [];
    for (const batch of batches) {
      const named = stepIdOf(batch.resource);
      // What names another step is of a command that another `exec` runs.
      const isOwn = named === null || named === this.start.stepId;
      const step = isOwn ? this.stepOf(batch.traceId, batch.records) : undefined;
      if (step === undefined) others.push(batch);
      else ofSteps.set(step, [...(ofSteps.get(step) ?? []), this.named(batch, step)]);
    }
    const { consumer, book } = await this.open();
    let rest: Delivery = { batches: others, foreign };
    for (const [step, own] of ofSteps) {
      step.consumer ??= await this.begin(step, consumer, book);
      // What is nobody's goes with the first: of a single engine command all is handed over at once.
      await step.consumer.consume({ ...rest, batches: [...own, ...rest.batches] });
      rest = { batches: [], foreign: [] };
    }
    if (ofSteps.size === 0) await consumer.consume(rest);
  }

  /** Says of each trace whose it is, where that was not said. @throws ExecutionBookError */
  async attach(): Promise<void> {
    for (const { consumer, traceId } of this.ofTraces.values()) await consumer?.attach([traceId]);
  }

  /**
   * Ends all of them, in their order: the command's end is that of the last one, and those before it ended within it. All
   * are begun by then, so that the run goes on until the last has ended. @throws ExecutionBookError
   */
  async end(book: Pick<ExecutionBook, 'begin' | 'end'>, ending: CommandEnding, endedUnixMs: number): Promise<void> {
    const steps = [...this.ofTraces.values()];
    // What was said in vain before is said again.
    for (const { start } of steps.slice(1)) await book.begin(start);
    for (const step of steps.slice(0, -1)) {
      await book.end(step.start.stepId, { kind: 'within' }, Math.min(step.endedUnixMs ?? endedUnixMs, endedUnixMs));
    }
    await book.end(steps.at(-1)?.start.stepId ?? this.start.stepId, ending, endedUnixMs);
  }

  private stepOf(traceId: TraceId, records: readonly TelemetryRecord[]): Step | undefined {
    const known = this.ofTraces.get(traceId);
    if (known === undefined && this.ofTraces.size >= MAX_STEPS) return this.ofTraces.values().next().value;
    const step = known ?? { traceId, start: this.startOf(traceId, records), endedUnixMs: null, consumer: undefined };
    this.ofTraces.set(traceId, step);
    for (const record of records) {
      if (record.recordType !== 'SpanEnd' || !isRoot(record)) continue;
      step.endedUnixMs = Math.max(step.endedUnixMs ?? 0, Number(record.endTimeUnixNano / NANO_PER_MS));
    }
    return step;
  }

  private startOf(traceId: TraceId, [first]: readonly TelemetryRecord[]): StepStart {
    if (this.ofTraces.size === 0) return this.start;
    const { stepId } = this.start;
    return {
      ...this.start,
      stepId: `${stepId.slice(0, MAX_OWN_CHARACTERS)}.${traceId.slice(0, TRACE_ID_CHARACTERS)}`,
      runOf: stepId,
      startedUnixMs: first === undefined ? this.start.startedUnixMs : startedUnixMs(first),
    };
  }

  private named(batch: RecordBatch, { start }: Step): RecordBatch {
    const { resource } = batch;
    if (start.stepId === this.start.stepId) return batch;
    return {
      ...batch,
      resource: { ...resource, attributes: { ...resource.attributes, [STEP_ATTRIBUTE]: start.stepId } },
    };
  }

  private async begin(
    { start }: Step,
    consumer: RecordConsumer,
    book: StepsTarget['book'],
  ): Promise<AttachingConsumer> {
    // The records are worth more; it is said again at the end. The command's own step is begun by whoever opens the target.
    if (start.stepId !== this.start.stepId) await book.begin(start).catch(() => undefined);
    return new AttachingConsumer(consumer, book, start.stepId);
  }
}

/** Step ids have at most 100 characters. */
const MAX_OWN_CHARACTERS = 100 - TRACE_ID_CHARACTERS - 1;

function isRoot({ eventType }: TelemetryRecord): boolean {
  const name = eventName(eventType);
  return name === 'Process' || name === 'Invocation';
}

function startedUnixMs(record: TelemetryRecord): number {
  const nano = record.recordType === 'LogRecord' ? record.timeUnixNano : record.startTimeUnixNano;
  return Number(nano / NANO_PER_MS);
}
