import type { Component } from '../component/component.js';
import type { DestinationStatus } from '../exporter/destination-status.js';
import type { TraceId } from '../record/ids.js';
import type { RunListener } from '../run/run-event.js';
import type { AppendListener } from '../sink/appended.js';
import type { ForeignListener } from '../sink/foreign-log.js';

/** All that is exported: is told what became durable and what happens to runs, and sends it to each destination. */
export interface Exports extends Component, AppendListener, ForeignListener, RunListener {
  /** Each destination: its name and where it is, without secrets. */
  readonly destinations: readonly (readonly [name: string, where: string])[];
  /** How each destination is, as it was a moment ago. */
  statuses(): readonly DestinationStatus[];
  /** A record log is looked after elsewhere: nothing of it is sent any more, but what is under way. */
  drop(traceId: TraceId): void;
  /** Sends what there is and tries again what fails, until everything is sent or `deadline` aborts. Whether everything is. */
  flush(deadline: AbortSignal): Promise<boolean>;
}
