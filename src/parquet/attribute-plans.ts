import { AttributePlan } from './attribute-plan.js';
import type { RowGroupColumns } from './row-group-columns.js';

/** Plans kept; those of further event types, which nobody knows, are worked out again each time. */
const MAX_PLANS = 256;
const SLOTS = 256;

interface KnownPlan {
  readonly eventType: Buffer;
  readonly plan: AttributePlan;
}

/** The plan of each event type, found by the bytes of its name. */
export class AttributePlans {
  private readonly plans = new Map<string, KnownPlan>();
  /** The plan that was found last for names that look alike: no text has to be made for these. */
  private readonly slots: (KnownPlan | undefined)[] = new Array(SLOTS).fill(undefined);

  constructor(private readonly columns: RowGroupColumns) {}

  /** The plan for the event type in `bytes` from `start` to `end`. */
  find(bytes: Buffer, start: number, end: number): AttributePlan {
    const slot = slotOf(bytes, start, end);
    const known = this.slots[slot];
    if (known !== undefined && isEqual(known.eventType, bytes, start, end)) return known.plan;
    const found = this.findByText(bytes.toString('utf8', start, end));
    this.slots[slot] = found;
    return found.plan;
  }

  private findByText(eventType: string): KnownPlan {
    const known = this.plans.get(eventType);
    if (known !== undefined) return known;
    const made = { eventType: Buffer.from(eventType), plan: new AttributePlan(eventType, this.columns) };
    if (this.plans.size < MAX_PLANS) this.plans.set(eventType, made);
    return made;
  }
}

/** Names differ in length and in letters of their last word. */
function slotOf(bytes: Buffer, start: number, end: number): number {
  const letters = (bytes[end - 1] ?? 0) + 3 * (bytes[end - 4] ?? 0) + 7 * (bytes[end - 8] ?? 0);
  return (letters + 31 * (end - start)) % SLOTS;
}

function isEqual(expected: Buffer, bytes: Buffer, start: number, end: number): boolean {
  if (expected.length !== end - start) return false;
  // From the end: event types begin alike.
  for (let i = expected.length - 1; i >= 0; i--) if (expected[i] !== bytes[start + i]) return false;
  return true;
}
