import type { AttributePlan } from './attribute-plan.js';
import type { EventPlan } from './event-plan.js';
import { KnownLayouts } from './known-layouts.js';
import { TextTable } from './text-table.js';

/** The plans of a run's event types, and what the run had of texts. */
export class EventPlans {
  readonly attributes: readonly AttributePlan[];
  readonly events: readonly EventPlan[];
  /** Texts that lines had. */
  readonly texts = new TextTable();

  constructor(readonly known: KnownLayouts = new KnownLayouts()) {
    this.attributes = known.attributes;
    this.events = known.events;
  }

  /** `undefined` when too many different ones came. */
  event(eventType: string): EventPlan | undefined {
    return this.known.event(eventType);
  }
}
