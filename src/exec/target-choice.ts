import type { ProcessContext } from '../cli/process-context.js';
import type { Configuration } from '../config/configuration.js';
import type { Logger } from '../core/logger.js';

/** What decides where the records go. */
export interface TargetChoice {
  readonly configuration: Configuration;
  /** `--to` */
  readonly to: string | undefined;
  /** Whether the user named the data folder: then a bridge with another one is not meant. */
  readonly isFolderChosen: boolean;
  /** The user's own OTLP endpoint, which may be a bridge. */
  readonly userEndpoint: string | undefined;
  readonly context: ProcessContext;
  readonly logger: Logger;
  /** Ends all waiting. */
  readonly giveUp: AbortSignal;
  /** Something does not work just now, in a sentence. */
  readonly onTrouble: (message: string) => void;
}
