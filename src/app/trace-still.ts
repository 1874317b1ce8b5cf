import type { TraceId } from '../record/ids.js';
import type { TraceHold } from '../retention/retained-telemetry.js';
import type { RunTracker } from '../run/run-tracker.js';
import type { JsonlRecordLog } from '../sink/jsonl-record-log.js';

/** Keeps traces still in a program at work: nothing is written to them, and the tracker knows nothing of them. */
export class TraceStill implements TraceHold {
  constructor(
    private readonly recordLog: Pick<JsonlRecordLog, 'whileClosed'>,
    private readonly tracker: Pick<RunTracker, 'release'>,
  ) {}

  whileStill(traceIds: readonly TraceId[], action: () => Promise<boolean>): Promise<boolean> {
    return this.recordLog.whileClosed(traceIds, async () => {
      const isFree = traceIds.every((traceId) => this.tracker.release(traceId));
      return isFree && (await action());
    });
  }
}
