import type { Clock } from '../../core/clock.js';
import type { RecordLogReader } from '../../log/record-log.js';
import type { RedactionLevel } from '../../redaction/known-names.js';
import type { InvocationNotes } from '../../run/invocation-notes.js';
import type { RunTracker } from '../../run/run-tracker.js';
import type { RunCatalog } from '../../storage/run-catalog.js';
import type { TraceCatalog } from '../../storage/trace-catalog.js';

/** What the API of run-bridge's own works with. */
export interface OwnApiDeps {
  readonly catalog: RunCatalog;
  readonly traces: TraceCatalog;
  readonly notes: Pick<InvocationNotes, 'listSetAside'>;
  readonly reader: RecordLogReader;
  readonly tracker: Pick<RunTracker, 'find'>;
  /** The setting; whose texts are whole is decided by `textRedactor`. */
  readonly redaction: RedactionLevel;
  readonly clock: Clock;
  /** Aborts when the program is stopping: streams end with it. */
  readonly stopping: AbortSignal;
}
