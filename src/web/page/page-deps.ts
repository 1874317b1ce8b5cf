import type { Router } from 'express';
import type { Authenticator } from '../../api/authenticator.js';
import type { LiveRuns } from '../../api/live-runs.js';
import type { RunMeasures } from '../../api/run-measures.js';
import type { SignInLinks } from '../../api/sign-in-links.js';
import type { Clock } from '../../core/clock.js';
import type { Logger } from '../../core/logger.js';
import type { RecordLogReader } from '../../log/record-log.js';
import type { RedactionLevel } from '../../redaction/known-names.js';
import type { InvocationNotes } from '../../run/invocation-notes.js';
import type { RunTracker } from '../../run/run-tracker.js';
import type { AccountStore } from '../../storage/account-store.js';
import type { Artifact, ArtifactFolder, ArtifactPath, ByteRange, OpenArtifact } from '../../storage/artifacts.js';
import type { CatalogStep, RunCatalog } from '../../storage/run-catalog.js';
import type { TraceCatalog } from '../../storage/trace-catalog.js';

/** Dependencies of the pages. */
export interface PageDeps {
  readonly authenticator: Pick<Authenticator, 'admit'>;
  readonly accounts: Pick<AccountStore, 'isAlone'>;
  /** Links that sign in once; `null` if other machines can reach the pages. */
  readonly links: Pick<SignInLinks, 'exchange'> | null;
  readonly catalog: Pick<RunCatalog, 'findRun' | 'listRuns' | 'stepsOf' | 'neighboursOf'>;
  readonly traces: Pick<TraceCatalog, 'runsOf'>;
  readonly notes: Pick<InvocationNotes, 'listSetAside'>;
  readonly tracker: Pick<RunTracker, 'find'>;
  /** Reads the record logs of runs, of this or other processes. */
  readonly reader: Pick<RecordLogReader, 'lengthBytes'>;
  readonly measures: Pick<RunMeasures, 'ofSteps' | 'digestsOf' | 'whenMeasured' | 'logsOf'>;
  readonly artifacts: StepArtifacts;
  /** How far runs under way have come. */
  readonly live: Pick<LiveRuns, 'of'>;
  readonly jobs: PageJobs;
  /** Pages of features, mounted behind the sign-in. */
  readonly routers: readonly Router[];
  /** The redaction setting, for texts shown to visitors who may not read artifacts. */
  readonly redaction: RedactionLevel;
  /** The public address of the pages; `null` if not configured. */
  readonly publicUrl: string | null;
  /** Other programs that show traces. */
  readonly traceViewers: readonly TraceViewer[];
  /** The destinations to which a run can be sent again. Default: none. */
  readonly destinations?: readonly string[];
  /** Returns the URL at which telemetry is received. */
  readonly otlpUrl: () => string;
  /** Whether telemetry needs a token there. */
  readonly isTokenNeeded: boolean;
  /** The program's version. */
  readonly version: string;
  readonly clock: Clock;
  readonly logger: Logger;
  /** Aborts when the program stops; streams end then. */
  readonly stopping: AbortSignal;
}

/** Another program that shows traces. */
export interface TraceViewer {
  readonly name: string;
  /** Its URL, with `{trace_id}` for the trace's id. */
  readonly url: string;
}

/** The artifacts of steps. All methods throw `ArtifactError`. */
export interface StepArtifacts {
  /** Returns the sorted paths of all downloads of a step. */
  list(step: CatalogStep): Promise<readonly ArtifactPath[]>;
  /** Returns a folder of a step's downloads. @param folder empty for that of the step */
  listFolder(step: CatalogStep, folder: ArtifactPath | ''): Promise<ArtifactFolder>;
  /** Returns the downloads of a step with their sizes. */
  files(step: CatalogStep): Promise<readonly Artifact[]>;
  /** Returns a download; `undefined` if it does not exist. */
  stat(step: CatalogStep, path: ArtifactPath): Promise<Artifact | undefined>;
  /** Opens a download or a part of it; `undefined` if it does not exist. */
  open(step: CatalogStep, path: ArtifactPath, range?: ByteRange): Promise<OpenArtifact | undefined>;
}

/** Whether a run under way can be cancelled from here: whether that was requested already, or its command is out of reach. */
export type CancelState = 'possible' | 'requested' | 'outOfReach';

/** What jobs say of runs. */
export interface PageJobs {
  /** @throws StoreError */
  cancelStateOf(runId: number): Promise<CancelState>;
  /** Returns the end of a step's output, and the number of bytes omitted before it; `undefined` for a step that no job ran. @throws StoreError */
  outputOf(stepId: string): Promise<{ readonly text: string; readonly droppedBytes: number } | undefined>;
}
