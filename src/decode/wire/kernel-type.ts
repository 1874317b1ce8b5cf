import type { Severity } from '../../record/severity.js';
import { spanSeverity } from '../span-severity.js';
import type { AttributeLayout } from './attribute-layout.js';
import type { FieldPlan, TypePlan } from './field-plan.js';
import { KernelField } from './kernel-field.js';
import type { KernelHeap } from './kernel-heap.js';

// Places of numbers as in kernel/assembly/templates.ts.
const STEP = { child: 1, layout: 3 };
const TYPE_INDEX = 3;
const NO_INDEX = -1;

/** A step through the attributes in the order in which they come. */
interface Step {
  readonly address: number;
  readonly following: Map<FieldPlan, Step>;
}

/** An event type as the kernel knows it: the orders of attributes in which its spans came, as a tree. */
export class KernelType {
  readonly address: number;
  private readonly fields = new Map<FieldPlan, KernelField>();
  private readonly first: Step;
  /** Consecutive spans share a layout, also those that the kernel leaves to JavaScript. */
  private readonly taught = new WeakMap<AttributeLayout, readonly KernelField[]>();

  /**
   * @param next address of another type, 0 for none
   * @param beginning how the names of its spans begin
   * @throws RangeError when the kernel's memory is full
   */
  constructor(
    private readonly heap: KernelHeap,
    next: number,
    beginning: Buffer,
  ) {
    this.first = this.newStep(0, 0);
    const text = heap.placeBytes(beginning);
    this.address = heap.placeNumbers([next, text, beginning.length, NO_INDEX, this.first.address]);
  }

  /** Says which number the type has in the page in hand; without one, the kernel leaves its spans alone. */
  setIndex(index: number = NO_INDEX): void {
    this.heap.set(this.address, TYPE_INDEX, index);
  }

  /** The fields of a layout, which is taught if it is new; `undefined` where the kernel cannot have it. @throws RangeError when its memory is full */
  teach(type: TypePlan, layout: AttributeLayout): readonly KernelField[] | undefined {
    const taught = this.taught.get(layout);
    if (taught !== undefined) return taught;
    if (!layout.plans.every(KernelField.canHold) || isWatchedTwice(layout)) return undefined;
    let step = this.first;
    const fields = layout.plans.map((plan) => {
      step = step.following.get(plan) ?? this.addStep(step, plan);
      return this.fieldOf(plan);
    });
    if (this.heap.get(step.address, STEP.layout) === 0) {
      this.heap.set(step.address, STEP.layout, this.placeLayout(type, layout, fields));
    }
    this.taught.set(layout, fields);
    return fields;
  }

  private addStep(before: Step, plan: FieldPlan): Step {
    const step = this.newStep(this.fieldOf(plan).address, this.heap.get(before.address, STEP.child));
    this.heap.set(before.address, STEP.child, step.address);
    before.following.set(plan, step);
    return step;
  }

  private newStep(field: number, sibling: number): Step {
    return { address: this.heap.placeNumbers([field, 0, sibling, 0]), following: new Map() };
  }

  private fieldOf(plan: FieldPlan): KernelField {
    let field = this.fields.get(plan);
    if (field === undefined) {
      field = new KernelField(plan, this.heap);
      this.fields.set(plan, field);
    }
    return field;
  }

  private placeLayout(type: TypePlan, { plans, order }: AttributeLayout, fields: readonly KernelField[]): number {
    const { usual, other, name, text } = severitiesOf(type);
    const tail = type.tail(usual);
    const otherTail = type.tail(other);
    const fixedBytes = 2 * (tail.length + otherTail.length + fields.reduce((sum, { lineBytes }) => sum + lineBytes, 0));
    return this.heap.placeNumbers([
      this.heap.placeBytes(Uint8Array.from(order)),
      order.length,
      fixedBytes,
      this.heap.placeBytes(tail),
      tail.length,
      type.eventTypeHead.length,
      plans.findIndex(({ key }) => key.name === name),
      this.heap.placeBytes(Buffer.from(text)),
      Buffer.byteLength(text),
      this.heap.placeBytes(otherTail),
      otherTail.length,
    ]);
  }
}

/** Two watched attributes that share a cell: which of them counts, JavaScript knows. */
function isWatchedTwice({ plans, watched }: AttributeLayout): boolean {
  const cells = watched.map((index) => plans[index]?.watchedAs).filter((cell) => cell !== NO_INDEX);
  return new Set(cells).size < cells.length;
}

/** The severities of a type's spans: the usual one, and the other one if an attribute has a certain text. */
function severitiesOf({ shortType }: TypePlan) {
  let asked = { name: '', text: '' };
  const usual = spanSeverity(shortType, (name, text) => {
    asked = { name, text };
    return false;
  });
  const other: Severity = spanSeverity(shortType, () => true);
  return { usual, other, ...asked };
}
