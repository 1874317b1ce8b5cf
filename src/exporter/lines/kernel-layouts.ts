import { SpanKind } from '@opentelemetry/api';
import { KernelHeap } from '../../decode/wire/kernel-heap.js';
import type { AttributePlan } from './attribute-plan.js';
import type { LineKernel } from './line-kernel.js';
import type { Literal } from './literal.js';
import { VERDICT_ATTRIBUTES } from './verdict-attributes.js';

// Places of numbers as in kernel/assembly/lines/templates.ts.
const FIRST_ATTRIBUTE = 6;
const NAME = 1;
const ADAPTER = 2;

/** What the kernel is to know of an event type. */
interface EventLayout {
  readonly index: number;
  readonly tail: Literal;
  readonly typeAttribute: Buffer;
  readonly isLineEnough: boolean;
  readonly needsOutcome: boolean;
}

const FAILED = 1;
/** Outcomes of nodes of which the line says all that is to be said. */
const OUTCOMES = [
  ['NODE_OUTCOME_ERROR', VERDICT_ATTRIBUTES.error, FAILED],
  ['NODE_OUTCOME_SKIPPED', VERDICT_ATTRIBUTES.skipped, 0],
  ['NODE_OUTCOME_SUCCESS', VERDICT_ATTRIBUTES.success, 0],
] as const;

/** Teaches the kernel event types and attributes as they come. When its memory for that is full, it learns no more. */
export class KernelLayouts {
  private readonly heap: KernelHeap;
  /** Address of the event type that was taught last; the kernel tries it first. */
  private lastEvent = 0;
  private readonly events = new Map<EventLayout, number>();
  private isFull = false;

  constructor(private readonly kernel: LineKernel) {
    this.heap = new KernelHeap(kernel);
  }

  event(plan: EventLayout): void {
    this.teach(() => {
      const tail = this.place(plan.tail);
      const type = this.heap.placeBytes(plan.typeAttribute);
      const kind = plan.isLineEnough ? SpanKind.INTERNAL + 1 : 0;
      const outcome = plan.needsOutcome ? this.outcomes() : 0;
      const head = [0, 0, this.lastEvent, tail, plan.tail.length, plan.index, 0];
      this.lastEvent = this.heap.placeNumbers([...head, type, plan.typeAttribute.length, kind, outcome]);
      this.heap.set(this.kernel.writer.eventPlans, plan.index, this.lastEvent);
      this.events.set(plan, this.lastEvent);
      this.kernel.setEvents(this.lastEvent);
    });
  }

  attribute(event: EventLayout, plan: AttributePlan): void {
    const address = this.events.get(event);
    if (address === undefined) return;
    this.teach(() => {
      const { quoted, cell, role, isReadAtOnce, keyBytes, treatment } = plan;
      const roleBit = role < 0 ? 0 : 1 << role;
      const teaches = plan.isAdapter ? ADAPTER : plan.isName ? NAME : 0;
      const text = this.place(quoted);
      const sibling = this.heap.get(address, FIRST_ATTRIBUTE);
      const isAtOnce = isReadAtOnce ? 1 : 0;
      const numbers = [0, 0, sibling, text, quoted.length, cell, roleBit, teaches, isAtOnce, 0, 0, 0, 0];
      const key = this.heap.placeBytes(keyBytes);
      const placed = this.heap.placeNumbers([...numbers, key, keyBytes.length, treatment]);
      this.heap.set(address, FIRST_ATTRIBUTE, placed);
      const { plans, maxPlans } = this.kernel.writer;
      if (plan.index < maxPlans) this.heap.set(plans, plan.index, placed);
    });
  }

  /** The first of the outcomes, each with the address of the next. */
  private outcomes(): number {
    return OUTCOMES.reduce((next, [value, verdict, isFailure]) => {
      const text = this.heap.placeBytes(Buffer.from(value));
      const attribute = this.heap.placeBytes(verdict);
      return this.heap.placeNumbers([next, text, value.length, attribute, verdict.length, isFailure]);
    }, 0);
  }

  private place(literal: Literal): number {
    return this.heap.placeBytes(Buffer.from(literal.text, 'latin1'));
  }

  private teach(lesson: () => void): void {
    if (this.isFull) return;
    try {
      lesson();
    } catch (error) {
      if (!(error instanceof RangeError)) throw error;
      this.isFull = true;
    }
  }
}
