import type { Clock } from '../../core/clock.js';
import type { RecordLogReader } from '../../log/record-log.js';
import type { RedactionLevel } from '../../redaction/known-names.js';
import type { InvocationNotes } from '../../run/invocation-notes.js';
import type { RunCatalog } from '../../storage/run-catalog.js';
import type { TraceCatalog } from '../../storage/trace-catalog.js';
import type { RunMeasures } from '../run-measures.js';

/** What the API of run-bridge's own works with. */
export interface OwnApiDeps {
  readonly catalog: RunCatalog;
  readonly traces: TraceCatalog;
  readonly notes: Pick<InvocationNotes, 'listSetAside'>;
  readonly reader: RecordLogReader;
  readonly measures: Pick<RunMeasures, 'ofSteps'>;
  /** The setting; whose texts are whole is decided by `textRedactor`. */
  readonly redaction: RedactionLevel;
  readonly clock: Clock;
  /** Aborts when the program is stopping: streams end with it. */
  readonly stopping: AbortSignal;
}
