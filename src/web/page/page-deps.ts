import type { Router } from 'express';
import type { Authenticator } from '../../api/authenticator.js';
import type { RunMeasures } from '../../api/run-measures.js';
import type { SignInLinks } from '../../api/sign-in-links.js';
import type { Clock } from '../../core/clock.js';
import type { Logger } from '../../core/logger.js';
import type { RecordLogReader } from '../../log/record-log.js';
import type { RedactionLevel } from '../../redaction/known-names.js';
import type { InvocationNotes } from '../../run/invocation-notes.js';
import type { RunTracker } from '../../run/run-tracker.js';
import type { Artifact, ArtifactPath, ByteRange, OpenArtifact } from '../../storage/artifacts.js';
import type { CatalogStep, RunCatalog, TraceCatalog } from '../../storage/run-catalog.js';

/** What the pages read. */
export interface PageDeps {
  readonly authenticator: Pick<Authenticator, 'admit'>;
  /** Links that sign in once; `null` where the pages can be reached from elsewhere. */
  readonly links: Pick<SignInLinks, 'exchange'> | null;
  readonly catalog: Pick<RunCatalog, 'findRun' | 'listRuns' | 'stepsOf'>;
  readonly traces: Pick<TraceCatalog, 'runsOf'>;
  readonly notes: Pick<InvocationNotes, 'listSetAside'>;
  readonly tracker: Pick<RunTracker, 'find'>;
  /** Reads the record logs of runs, of whichever of several processes has them. */
  readonly reader: Pick<RecordLogReader, 'lengthBytes'>;
  readonly measures: Pick<RunMeasures, 'ofSteps' | 'digestsOf' | 'whenMeasured' | 'logsOf'>;
  readonly artifacts: StepArtifacts;
  readonly jobs: JobOutputs;
  /** Pages of features, mounted behind the sign-in. */
  readonly routers: readonly Router[];
  /** The setting: texts for visitors without the right to read artifacts. */
  readonly redaction: RedactionLevel;
  /** The public address of the pages; `null` if not configured. */
  readonly publicUrl: string | null;
  /** Where traces can be looked at elsewhere. */
  readonly traceViewers: readonly TraceViewer[];
  /** Names of the destinations that a run can be sent to again; left out: none. */
  readonly destinations?: readonly string[];
  /** Where telemetry is received. */
  readonly otlpUrl: () => string;
  /** Whether telemetry needs a token there. */
  readonly isTokenNeeded: boolean;
  /** The program's version. */
  readonly version: string;
  readonly clock: Clock;
  readonly logger: Logger;
  /** Aborts when the program is stopping: streams end with it. */
  readonly stopping: AbortSignal;
}

/** Where a trace can be looked at. */
export interface TraceViewer {
  readonly name: string;
  /** With `{trace_id}` for its id. */
  readonly url: string;
}

/** What steps left. All methods throw `ArtifactError`. */
export interface StepArtifacts {
  /** Sorted paths of all downloads of a step. */
  list(step: CatalogStep): Promise<readonly ArtifactPath[]>;
  /** The same with their sizes. */
  files(step: CatalogStep): Promise<readonly Artifact[]>;
  /** `undefined` if it does not exist. */
  stat(step: CatalogStep, path: ArtifactPath): Promise<Artifact | undefined>;
  /** `undefined` if it does not exist. */
  open(step: CatalogStep, path: ArtifactPath, range?: ByteRange): Promise<OpenArtifact | undefined>;
}

/** What commands wrote that a job ran. */
export interface JobOutputs {
  /** The end of a step's output, and how many bytes are left out before it; `undefined` for a step that no job ran. @throws StoreError */
  outputOf(stepId: string): Promise<{ readonly text: string; readonly droppedBytes: number } | undefined>;
}
