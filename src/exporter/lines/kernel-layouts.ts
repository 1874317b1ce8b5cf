import { KernelHeap } from '../../decode/wire/kernel-heap.js';
import type { AttributePlan } from './attribute-plan.js';
import type { LineKernel } from './line-kernel.js';
import type { Literal } from './literal.js';

// Places of numbers as in kernel/assembly/lines/templates.ts.
const FIRST_ATTRIBUTE = 6;
const NAME = 1;
const ADAPTER = 2;

/** What the kernel is to know of an event type. */
interface EventLayout {
  readonly index: number;
  readonly tail: Literal;
}

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
      this.lastEvent = this.heap.placeNumbers([0, 0, this.lastEvent, tail, plan.tail.length, plan.index, 0]);
      this.events.set(plan, this.lastEvent);
      this.kernel.setEvents(this.lastEvent);
    });
  }

  attribute(event: EventLayout, plan: AttributePlan): void {
    const address = this.events.get(event);
    if (address === undefined) return;
    this.teach(() => {
      const { quoted, cell, role, isReadAtOnce } = plan;
      const roleBit = role < 0 ? 0 : 1 << role;
      const teaches = plan.isAdapter ? ADAPTER : plan.isName ? NAME : 0;
      const text = this.place(quoted);
      const sibling = this.heap.get(address, FIRST_ATTRIBUTE);
      const isAtOnce = isReadAtOnce ? 1 : 0;
      const numbers = [0, 0, sibling, text, quoted.length, cell, roleBit, teaches, isAtOnce, 0, 0, 0, 0];
      this.heap.set(address, FIRST_ATTRIBUTE, this.heap.placeNumbers(numbers));
    });
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
