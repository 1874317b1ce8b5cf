import { CellBatch, type ItemChunk, withResource } from '../otlp/wire/item-chunk.js';
import { itemReading } from '../otlp/wire/read-items.js';
import { type Resource, STEP_ATTRIBUTE, stepIdOf } from '../record/attributes.js';
import { Cell, cell, nanosAt } from '../record/cells.js';
import type { Delivery, RecordBatch, RecordConsumer } from '../record/record-batch.js';
import { SpanIdTable } from '../record/span-id-table.js';
import type { SpanId, TelemetryRecord, TraceId, UnixNano } from '../record/telemetry-record.js';
import { eventName } from '../run/node-outcome.js';
import type { StepRegistry } from '../run/step-registry.js';
import type { CommandEnding, StepStart } from '../storage/steps.js';
import { mayRunSeveral } from './command-environment.js';

/** Where the records of a command go, and the registry of its steps. */
export interface StepsTarget {
  readonly consumer: RecordConsumer;
  readonly registry: CommandStepRegistry;
}

type CommandStepRegistry = Pick<StepRegistry, 'register' | 'attach' | 'end'>;

/** One engine command of a command that may run several (make, a script). */
export interface CommandStep {
  readonly start: StepStart;
  readonly traceId: TraceId;
  /** The span of its process; `null` until that came. */
  readonly processSpanId: SpanId | null;
}

interface Step extends CommandStep {
  processSpanId: SpanId | null;
  invocationSpanId: SpanId | null;
  /** When the first of its records was made; `null` until one came. */
  beganUnixNano: UnixNano | null;
  /** By its root spans; `null` until one has ended. */
  endedUnixNano: UnixNano | null;
  /** Whether it began with its root span, as in what the engine writes: then nothing of it came before. */
  readonly isFromRoot: boolean;
  /** Its process has ended; only late records may still arrive. */
  isOver: boolean;
  /** Whether it is known where its records go that it has begun; `undefined` until records are handed over. */
  hasBegun: boolean | undefined;
  isEndReported: boolean;
  /** That the trace is its was said where its records go. */
  isAttached: boolean;
  /** By the resource that came with the records: theirs, which names the step. */
  readonly resources: WeakMap<Resource, Resource>;
}

/** A command has so many steps at most; what further engine commands send is of one that is known. */
const MAX_STEPS = 1_000;
/** Spans of one trace that are distinguished, 24 bytes each; those beyond are assigned by their times. */
const MAX_SPANS = 1_000_000;
/** Enough of a trace's id to tell the commands of one script apart. */
const TRACE_ID_CHARACTERS = 16;
const NANO_PER_MS = 1_000_000n;

/**
 * Makes each engine command inside a command a step of its own, in the order in which their records come: the first is the
 * command's step, the further ones are registered when they begin. They are distinguished by their traces, and by their process
 * and invocation spans where they share one. Records need not say whose they are: they came by a file or port of this command
 * alone, so each is given its step as a resource attribute here. A step ends when the end of its process was
 * handed over and a further one has begun; the last one ends with the command.
 */
export class CommandSteps implements RecordConsumer {
  private readonly all: Step[] = [];
  private readonly ofTraces = new Map<TraceId, TraceCommands>();
  /** What is being said of steps that have ended; one after the other, and nothing waits for it. */
  private saying: Promise<void> = Promise.resolve();

  private readonly added: Resource['attributes'];

  /**
   * @param open gives where records go; asked whenever some come
   * @param variable the command's OTEL_RESOURCE_ATTRIBUTES: what it says and a resource lacks is added, since engines may ignore it
   */
  constructor(
    private readonly open: () => Promise<StepsTarget>,
    private readonly start: StepStart,
    variable: string,
  ) {
    this.added = attributesIn(variable);
  }

  /** Those that are known, in their order. */
  get steps(): readonly CommandStep[] {
    return this.all;
  }

  /** An engine command is known by its trace, before its records are handed over. */
  note(traceId: TraceId): void {
    this.commandsOf(traceId).latest();
  }

  async consume({ batches, passthrough }: Delivery): Promise<void> {
    const ofSteps = new Map<Step, RecordBatch[]>();
    const others: RecordBatch[] = [];
    for (const batch of batches) {
      const named = stepIdOf(batch.resource);
      // What names another step is of a command that another `exec` runs.
      if (named !== null && named !== this.start.stepId) {
        others.push(batch);
        continue;
      }
      for (const [step, part] of this.commandsOf(batch.traceId).divide(batch)) {
        const parts = ofSteps.get(step) ?? [];
        ofSteps.set(step, parts);
        parts.push(this.named(part, step));
      }
    }
    const { consumer, registry } = await this.open();
    let rest: Delivery = { batches: others, passthrough };
    for (const [step, own] of ofSteps) {
      await this.begin(step, registry);
      // What is nobody's goes with the first: of a single engine command all is handed over at once.
      await consumer.consume({ ...rest, batches: [...own, ...rest.batches] });
      rest = { batches: [], passthrough: [] };
    }
    if (ofSteps.size === 0) await consumer.consume(rest);
    this.reportEnds(registry);
  }

  /** Says of each trace whose it is, where that was not said. @throws StepRegistryError */
  async attach(registry: Pick<StepRegistry, 'attach'>): Promise<void> {
    await this.saying;
    for (const step of this.all) await attach(step, registry);
  }

  /**
   * Ends all that have not ended, in their order: the command's end is that of the last one, and those before it ended
   * within it. All are begun by then, so that the run goes on until the last has ended. @throws StepRegistryError
   */
  async end(
    registry: Pick<StepRegistry, 'register' | 'end'>,
    ending: CommandEnding,
    endedUnixMs: number,
  ): Promise<void> {
    await this.saying;
    // What was said in vain before is said again.
    for (const { start, isEndReported } of this.all.slice(1)) if (!isEndReported) await registry.register(start);
    for (const step of this.all.slice(0, -1)) {
      if (step.isEndReported) continue;
      await registry.end(step.start.stepId, { kind: 'within' }, Math.min(endOf(step) ?? endedUnixMs, endedUnixMs));
      step.isEndReported = true;
    }
    const last = this.all.at(-1);
    await registry.end(
      last?.start.stepId ?? this.start.stepId,
      ending,
      Math.min(this.endOfEngine() ?? endedUnixMs, endedUnixMs),
    );
  }

  /** When the engine ended by its telemetry, where the command is the engine alone: what it does afterwards is sending that. */
  private endOfEngine(): number | null {
    const [only, ...others] = this.all;
    const isAlone = only !== undefined && others.length === 0 && !mayRunSeveral(this.start.command);
    return isAlone && only.isOver ? endOf(only) : null;
  }

  /** Says the end of those that are over. Never the last one's: it keeps the run going, and the command's end is its own. */
  private reportEnds(registry: CommandStepRegistry): void {
    const last = this.all.findLastIndex(({ hasBegun }) => hasBegun);
    for (const step of this.all.slice(0, Math.max(0, last))) {
      const { start } = step;
      const endedUnixMs = endOf(step);
      if (!step.isOver || step.isEndReported || endedUnixMs === null) continue;
      step.isEndReported = true;
      const say = async () => {
        await attach(step, registry);
        await registry.end(start.stepId, { kind: 'within' }, endedUnixMs);
      };
      // What cannot be said now is said when the command has ended.
      this.saying = this.saying.then(say).catch(() => {
        step.isEndReported = false;
      });
    }
  }

  private commandsOf(traceId: TraceId): TraceCommands {
    const known = this.ofTraces.get(traceId);
    if (known !== undefined) return known;
    const made = new TraceCommands((first) => this.add(traceId, first));
    this.ofTraces.set(traceId, made);
    return made;
  }

  /** @param first of its records; `undefined` where it is known by its trace alone */
  private add(traceId: TraceId, first: TelemetryRecord | undefined): Step {
    const known = this.ofTraces.get(traceId)?.count ?? 0;
    const [oldest] = this.all;
    if (oldest !== undefined && this.all.length >= MAX_STEPS) return oldest;
    const part = known === 0 ? traceId.slice(0, TRACE_ID_CHARACTERS) : (first?.spanId ?? String(this.all.length + 1));
    const { stepId } = this.start;
    const further = {
      ...this.start,
      stepId: `${stepId.slice(0, MAX_OWN_CHARACTERS)}.${part}`,
      runOf: stepId,
      startedUnixMs: first === undefined ? this.start.startedUnixMs : Number(timeOf(first) / NANO_PER_MS),
    };
    const step: Step = {
      ...{ traceId, start: oldest === undefined ? this.start : further },
      ...{ processSpanId: null, invocationSpanId: null, beganUnixNano: null, endedUnixNano: null },
      isFromRoot: first !== undefined && (isProcess(first) || isInvocation(first)),
      ...{ isOver: false, hasBegun: undefined, isEndReported: false, isAttached: false, resources: new WeakMap() },
    };
    this.all.push(step);
    return step;
  }

  private named(batch: RecordBatch, { start, resources }: Step): RecordBatch {
    const { resource } = batch;
    let named = resources.get(resource);
    if (named === undefined) {
      const attributes = { ...this.added, ...resource.attributes, [STEP_ATTRIBUTE]: start.stepId };
      named = { ...resource, attributes };
      resources.set(resource, named);
    }
    return withResource(batch, named);
  }

  private async begin(step: Step, registry: CommandStepRegistry): Promise<void> {
    if (step.hasBegun !== undefined) return;
    // Opening the target begins the command's own step.
    const isOwn = step.start.stepId === this.start.stepId;
    const begun = isOwn ? Promise.resolve() : registry.register(step.start);
    // The records are worth more; it is said again at the end.
    step.hasBegun = await begun.then(
      () => true,
      () => false,
    );
  }
}

/** Says whose a trace is, once. @throws StepRegistryError */
async function attach(step: Step, registry: Pick<StepRegistry, 'attach'>): Promise<void> {
  if (step.isAttached || step.hasBegun === undefined) return;
  await registry.attach(step.start.stepId, step.traceId);
  step.isAttached = true;
}

/** What OTEL_RESOURCE_ATTRIBUTES says: engines that read it take its values as they are, without decoding. An SDK says itself what it is. */
function attributesIn(variable: string): Resource['attributes'] {
  const pairs = variable.split(',').flatMap((pair) => {
    const equals = pair.indexOf('=');
    const key = pair.slice(0, Math.max(0, equals)).trim();
    return key === '' || key.startsWith('telemetry.') ? [] : [[key, pair.slice(equals + 1).trim()] as const];
  });
  return Object.fromEntries(pairs);
}

/** Step ids have at most 100 characters. */
const MAX_OWN_CHARACTERS = 100 - TRACE_ID_CHARACTERS - 1;

/**
 * The engine commands of one trace. Of what the engine writes, starts come before ends and parents before children: what
 * is below a span of a command is of that command. Where a span's parent did not come before it (OTLP), times decide:
 * consecutive commands are distinguished then, concurrent ones are not.
 */
class TraceCommands {
  private readonly steps: Step[] = [];
  private readonly positions = new Map<Step, number>();
  /** The command of each span that came, by its position. */
  private readonly ofSpans = new SpanIdTable();

  /** @param add makes a further one */
  constructor(private readonly add: (first: TelemetryRecord | undefined) => Step) {}

  get count(): number {
    return this.steps.length;
  }

  /** The one that began last. */
  latest(): Step {
    return this.steps.at(-1) ?? this.begin(undefined);
  }

  /** Whose records they are: consecutive ones of one command as a batch, in the order in which they came. */
  divide(batch: RecordBatch): readonly (readonly [step: Step, part: RecordBatch])[] {
    if (batch instanceof CellBatch) return this.divideItems(batch);
    const { records } = batch;
    const divided = new Map<Step, TelemetryRecord[]>();
    if (records.length === 0) divided.set(this.latest(), []);
    for (const record of records) {
      const step = this.assign(record);
      const own = divided.get(step);
      if (own === undefined) divided.set(step, [record]);
      else own.push(record);
    }
    return [...divided].map(([step, own]) => [step, { ...batch, records: own }]);
  }

  private divideItems({ traceId, resource, chunk, from, to }: CellBatch): readonly (readonly [Step, CellBatch])[] {
    const divided: (readonly [Step, CellBatch])[] = [];
    for (let index = from; index < to; index++) {
      let step = this.stepOfCells(chunk, index);
      if (step === undefined) for (const record of chunk.recordsOf(index)) step = this.assign(record);
      const [last, part] = divided.at(-1) ?? [];
      if (step === undefined) continue;
      if (step === last && part !== undefined) part.to = index + 1;
      else divided.push([step, new CellBatch(traceId, resource, chunk, index, index + 1)]);
    }
    return divided;
  }

  /** The command of a span, or of a log record, of which that is plain from its cells; `undefined` where its records have to be asked. */
  private stepOfCells(chunk: ItemChunk, index: number): Step | undefined {
    if (!chunk.look(index) || isRoot(itemReading().layouts.layout(cell(Cell.layout)).event.eventType)) return undefined;
    const high = cell(Cell.idHigh);
    const low = cell(Cell.idLow);
    const position =
      this.ofSpans.getHalves(high, low) ??
      (chunk.isLog(index) ? undefined : this.ofSpans.getHalves(cell(Cell.parentHigh), cell(Cell.parentLow)));
    const step = position === undefined ? undefined : this.steps[position];
    if (step === undefined || position === undefined) return undefined;
    noteTime(step, nanosAt(Cell.startLow) as UnixNano);
    if (!this.isFull) this.ofSpans.setHalves(high, low, position);
    return step;
  }

  private assign(record: TelemetryRecord): Step {
    const step = this.stepOf(record);
    note(step, record);
    if (record.spanId !== null && !this.isFull) this.ofSpans.set(record.spanId, this.positions.get(step) ?? 0);
    return step;
  }

  private stepOf(record: TelemetryRecord): Step {
    const known = this.ofSpan(record.spanId);
    if (known !== undefined) return known;
    const parent = record.recordType === 'LogRecord' ? undefined : this.ofSpan(record.parentSpanId);
    if (parent !== undefined) return parent;
    const isRoot = isProcess(record) || isInvocation(record);
    if (isRoot) return this.waitingForRoot(record) ?? this.begin(record);
    const named = record.recordType === 'LogRecord' ? record.spanId : record.parentSpanId;
    const [last] = this.steps.slice(-1);
    // What names no span, or one that could not be noted, begins nothing.
    if (last !== undefined && (named === null || this.isFull)) return this.atWork(timeOf(record)) ?? last;
    return this.atWork(timeOf(record)) ?? this.begin(record);
  }

  private get isFull(): boolean {
    return this.ofSpans.size >= MAX_SPANS;
  }

  private ofSpan(id: SpanId | null): Step | undefined {
    const at = id === null ? undefined : this.ofSpans.get(id);
    return at === undefined ? undefined : this.steps[at];
  }

  /** The one whose process, or invocation, it is; `undefined` where it is that of a further one. */
  private waitingForRoot(root: TelemetryRecord): Step | undefined {
    const began = timeOf(root);
    const isWaiting = ({ processSpanId, invocationSpanId, isOver, beganUnixNano }: Step) =>
      isProcess(root)
        ? processSpanId === null && (beganUnixNano === null || began <= beganUnixNano)
        : invocationSpanId === null && !isOver && (processSpanId === null || (beganUnixNano ?? began) <= began);
    // Of one at work beside it, its records may have been taken for those of the other.
    const isMixed = (step: Step) => !step.isFromRoot && isAtWork(step, began);
    return this.steps.find(isWaiting) ?? this.steps.find(isMixed);
  }

  /** The one that was at work at a time; `undefined` where all had ended by then. */
  private atWork(time: UnixNano): Step | undefined {
    const found = this.steps.findLast((step) => isAtWork(step, time));
    if (found !== undefined) return found;
    const last = this.steps.at(-1);
    const isAfterAll = last?.isOver === true && last.endedUnixNano !== null && time > last.endedUnixNano;
    return isAfterAll ? undefined : last;
  }

  private begin(first: TelemetryRecord | undefined): Step {
    const step = this.add(first);
    if (this.positions.has(step)) return step;
    this.positions.set(step, this.steps.length);
    this.steps.push(step);
    return step;
  }
}

function isAtWork({ beganUnixNano, isOver, endedUnixNano }: Step, time: UnixNano): boolean {
  return (beganUnixNano ?? 0n) <= time && (!isOver || endedUnixNano === null || time <= endedUnixNano);
}

function note(step: Step, record: TelemetryRecord): void {
  noteTime(step, timeOf(record));
  if (record.recordType === 'LogRecord') return;
  if (isProcess(record)) step.processSpanId ??= record.spanId;
  else if (isInvocation(record)) step.invocationSpanId ??= record.spanId;
  else return;
  if (record.recordType === 'SpanStart') return;
  const { endTimeUnixNano } = record;
  if (step.endedUnixNano === null || endTimeUnixNano > step.endedUnixNano) step.endedUnixNano = endTimeUnixNano;
  if (record.spanId === step.processSpanId) step.isOver = true;
}

function noteTime(step: Step, time: UnixNano): void {
  if (step.beganUnixNano === null || time < step.beganUnixNano) step.beganUnixNano = time;
}

function endOf({ endedUnixNano }: Step): number | null {
  return endedUnixNano === null ? null : Number(endedUnixNano / NANO_PER_MS);
}

/** Whether a record is of the span of an engine's process. */
export function isProcess({ recordType, eventType }: TelemetryRecord): boolean {
  return recordType !== 'LogRecord' && eventName(eventType) === 'Process';
}

function isInvocation({ recordType, eventType }: TelemetryRecord): boolean {
  return recordType !== 'LogRecord' && eventName(eventType) === 'Invocation';
}

/** Whether an event type is that of an engine's process or invocation. */
function isRoot(eventType: string): boolean {
  let known = ROOT_TYPES.get(eventType);
  if (known === undefined) {
    known = ['Process', 'Invocation'].includes(eventName(eventType));
    ROOT_TYPES.set(eventType, known);
  }
  return known;
}

/** Event types that have cells: those of the schema. */
const ROOT_TYPES = new Map<string, boolean>();

function timeOf(record: TelemetryRecord): UnixNano {
  return record.recordType === 'LogRecord' ? record.timeUnixNano : record.startTimeUnixNano;
}
