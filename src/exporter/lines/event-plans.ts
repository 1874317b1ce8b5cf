import type { AttributePlan } from './attribute-plan.js';
import type { EventPlan } from './event-plan.js';
import { KnownLayouts } from './known-layouts.js';
import { TaughtNames } from './taught-names.js';
import type { TextTable } from './text-table.js';

/** The plans of a run's event types, and texts that lines had. */
export class EventPlans {
  readonly attributes: readonly AttributePlan[];
  readonly events: readonly EventPlan[];
  readonly texts: TextTable;
  readonly taughtNames: TaughtNames;

  constructor(readonly known: KnownLayouts = new KnownLayouts()) {
    this.texts = known.texts;
    this.taughtNames = new TaughtNames(this.texts);
    this.attributes = known.attributes;
    this.events = known.events;
  }

  /** `undefined` when too many different ones came. */
  event(eventType: string): EventPlan | undefined {
    return this.known.event(eventType);
  }
}
