import type { ProcessContext } from '../cli/command.js';
import type { Configuration } from '../config/configuration.js';
import type { Logger } from '../core/logger.js';
import type { CommandHost } from '../feature.js';
import type { RecordConsumer } from '../record/record-batch.js';
import type { TraceId } from '../record/telemetry-record.js';
import type { StepRegistry } from '../run/step-registry.js';
import type { ArtifactSink } from '../storage/artifacts.js';

/** The registry of a wrapped command's step. */
export interface StepTarget {
  /** Registers runs and their steps. */
  readonly registry: StepRegistry;
  /** The `--to` by which a later start takes in what is left behind; `null` for the next start on the data folder. */
  readonly leftFor: string | null;
  /** Where the runs are, in words. */
  readonly where: string;
  /** Sends what waits until a span ends: everything was consumed. */
  settle(): Promise<void>;
  /**
   * Called when the command has ended and is registered as ended: judges the runs and forwards what is left, until `deadline`.
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
  /**
   * How long bringing artifacts there may keep the caller waiting, in milliseconds: the next start takes in the rest.
   * `Infinity` where this machine may have none: as long as it goes on.
   */
  readonly maxArtifactsMs: number;
}

/** What `exec` needs of the program. */
export type ExecHost = Pick<CommandHost, 'askState' | 'openState' | 'openStore'>;

/** What decides which bridge, or data folder, a command is registered with. */
export interface BridgeChoice {
  readonly configuration: Configuration;
  /** `--to` */
  readonly to: string | undefined;
  /** Whether the user named the data folder: then a bridge with another one is not meant. */
  readonly isFolderChosen: boolean;
  /** The user's own OTLP endpoint, which may be a bridge. */
  readonly userEndpoint: string | undefined;
  readonly context: ProcessContext;
  /** Opens the data folder, where no bridge takes the records. */
  readonly host: ExecHost;
}

/** What decides where the records go. */
export interface TargetChoice extends BridgeChoice {
  readonly logger: Logger;
  /** Ends all waiting. */
  readonly giveUp: AbortSignal;
  /** Something does not work just now, in a sentence. */
  readonly onTrouble: (message: string) => void;
}
