import type { AttributePlan } from './attribute-plan.js';
import { EventPlan } from './event-plan.js';
import { TextTable } from './text-table.js';

/** Different event types; lines of more are read in the general way. */
const MAX_EVENT_TYPES = 128;

/** How lines of the event types that came are read and exported. All runs of a destination share them. */
export class KnownLayouts {
  readonly attributes: AttributePlan[] = [];
  readonly events: EventPlan[] = [];
  /** Number of the line that `LineScanner` reads. */
  lineNumber = 0;
  /** Texts that lines had, of all runs: the next run of a project has mostly the same. */
  readonly texts = new TextTable();
  private readonly byType = new Map<string, EventPlan>();

  /** Whether it takes no more event types. */
  get isFull(): boolean {
    return this.byType.size >= MAX_EVENT_TYPES;
  }

  /** `undefined` when too many different ones came. */
  event(eventType: string): EventPlan | undefined {
    const known = this.byType.get(eventType);
    if (known !== undefined) return known;
    if (this.isFull) return undefined;
    const plan = new EventPlan(this.events.length, eventType, this.attributes);
    this.events.push(plan);
    this.byType.set(eventType, plan);
    return plan;
  }
}
