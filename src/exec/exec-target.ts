import type { ArtifactSink } from '../files/artifact/artifact-sink.js';
import type { TraceId } from '../record/ids.js';
import type { RecordConsumer } from '../record/record-batch.js';
import type { StepRegistry } from '../run/step-registry.js';

/** Where a wrapped command's step is told. */
export interface StepTarget {
  /** Where runs and their steps are told. */
  readonly registry: StepRegistry;
  /** The `--to` by which a later start takes in what is left behind; `null` for the next start on the data folder. */
  readonly spoolTo: string | null;
  /** Where the runs are, in words. */
  readonly where: string;
  /** Sends what is held back until a span ends: everything was consumed. */
  settle(): Promise<void>;
  /**
   * The command has ended and the registry was told: judges the runs and passes on what is to be passed on, as far as that goes before `deadline`.
   * @returns what is left to do, or to know, as a sentence; `null` when nothing is.
   */
  finish(traceIds: Iterable<TraceId>, deadline: AbortSignal): Promise<string | null>;
  /** @param deadline for what is under way; the rest is cut off */
  close(deadline: AbortSignal): Promise<void>;
}

/** Where the records of a wrapped command go, too: a store of this process's own, or a bridge that runs. */
export interface ExecTarget extends StepTarget {
  readonly consumer: RecordConsumer;
  /** Where artifacts of steps go. */
  readonly artifacts: ArtifactSink;
}
