import type { Clock } from '../../component/clock.js';
import type { RedactionLevel } from '../../exporter/redaction/redaction-policy.js';
import type { QueryEngine } from '../../query/query-engine.js';
import type { QueryFiles } from '../../query/query-files.js';
import type { TraceId } from '../../record/ids.js';
import type { InvocationNotes } from '../../run/invocation-notes.js';
import type { RunTracker } from '../../run/run-tracker.js';
import type { RecordLogReader } from '../../sink/record-log.js';
import type { RunCatalog } from '../../store/run-catalog.js';
import type { TraceCatalog, UnnamedRun } from '../../store/trace-catalog.js';

/** What the API of run-bridge's own works with. */
export interface OwnApiDeps {
  readonly dataFolder: string;
  /** Finds the files of runs elsewhere than there. */
  readonly queryFiles?: (traceIds: readonly TraceId[], unnamed: readonly UnnamedRun[]) => Promise<QueryFiles>;
  readonly catalog: RunCatalog;
  readonly traces: TraceCatalog;
  readonly notes: Pick<InvocationNotes, 'listSetAside'>;
  readonly reader: RecordLogReader;
  readonly tracker: Pick<RunTracker, 'find'>;
  readonly queries: Pick<QueryEngine, 'run'>;
  /** The setting; whose texts are whole is decided by `textRedactor`. */
  readonly redaction: RedactionLevel;
  readonly clock: Clock;
  /** Aborts when the program is stopping: streams end with it. */
  readonly stopping: AbortSignal;
}
