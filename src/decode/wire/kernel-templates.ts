import type { SpanPage } from '../../record/span-page.js';
import { NAME_BEGINNINGS } from '../span-event-type.js';
import type { AttributeLayout } from './attribute-layout.js';
import type { AttributesLine } from './attributes-line.js';
import type { TypePlan } from './field-plan.js';
import { KernelHeap } from './kernel-heap.js';
import { KernelType } from './kernel-type.js';
import type { SpanKernel } from './span-kernel.js';
import { type SpanSlice, STRING } from './span-slice.js';

/** A span that JavaScript wrote, with all that it knows of it. */
export interface WrittenSpan {
  readonly type: TypePlan;
  readonly layout: AttributeLayout;
  readonly from: Buffer;
  readonly span: SpanSlice;
  readonly attributes: AttributesLine;
  readonly lines: Buffer;
}

/**
 * Teaches the kernel the layouts and values of spans that JavaScript wrote, so that it writes the next ones like them.
 * When its memory for that is full, it learns no more: spans of other layouts stay with JavaScript.
 */
export class KernelTemplates {
  private readonly types = new Map<string, KernelType>();
  private isFull = false;

  constructor(kernel: SpanKernel) {
    const heap = new KernelHeap(kernel);
    let first = 0;
    for (const { beginning, eventType } of NAME_BEGINNINGS) {
      const type = new KernelType(heap, first, Buffer.from(beginning));
      this.types.set(eventType, type);
      first = type.address;
    }
    kernel.setEventTypes(first);
  }

  /** Of a new page: it has no event types yet. */
  begin(): void {
    for (const type of this.types.values()) type.setIndex();
  }

  learn(written: WrittenSpan, page: SpanPage): void {
    const type = this.types.get(written.type.eventType);
    if (type === undefined) return;
    type.setIndex(page.eventTypes.indexOf(written.type.eventType));
    if (this.isFull) return;
    try {
      teach(type, written);
    } catch (error) {
      if (!(error instanceof RangeError)) throw error;
      this.isFull = true;
    }
  }
}

function teach(type: KernelType, { type: plan, layout, from, span, attributes, lines }: WrittenSpan): void {
  const fields = type.teach(plan, layout);
  fields?.forEach((field, index) => {
    const start = span.valueStart[index] as number;
    if (!field.takesKnown || span.valueKind[index] !== STRING) return;
    if (field.plan.kind !== 'enum' && !isNested(from, start, span.valueEnd[index] as number)) return;
    field.teach(from.subarray(start, span.valueEnd[index]), attributes.jsonAt(lines, index));
  });
}

function isNested(from: Buffer, start: number, end: number): boolean {
  return end > start && (from[start] === 0x7b || from[start] === 0x5b);
}
