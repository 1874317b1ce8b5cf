import type { ProcessContext } from '../cli/process-context.js';
import type { Configuration } from '../config/configuration.js';
import type { Environment } from '../config/environment.js';
import type { Logger } from '../core/logger.js';
import type { ExecOptions } from './exec-options.js';
import type { Notices } from './notices.js';
import type { OtlpInlet } from './otlp-inlet.js';
import type { PlaceInTrace } from './place-in-trace.js';
import type { UserFile } from './user-file.js';

/** What is known of a command before it starts. */
export interface CommandFacts {
  readonly context: ProcessContext;
  readonly options: ExecOptions;
  readonly configuration: Configuration;
  readonly isFolderChosen: boolean;
  readonly logger: Logger;
  readonly notices: Notices;
  readonly stepId: string;
  readonly startedUnixMs: number;
  readonly command: readonly string[];
  readonly inlet: OtlpInlet;
  /** Folder of this command alone; `undefined` where none could be made. */
  readonly folder: string | undefined;
  /** The JSONL to follow; `undefined` where there is nothing to follow. */
  readonly file: UserFile | undefined;
  /** The command's own span, where there is to be one. */
  readonly span: PlaceInTrace['span'];
  /** The environment that the command gets. */
  readonly environment: Environment;
}
