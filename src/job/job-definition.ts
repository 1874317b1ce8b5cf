import type { DeclaredJob } from '../run/place-finder.js';

/** A job as the configuration declares it. */
export interface JobDefinition extends DeclaredJob {
  /** What a run does, one after the other: programs with their arguments. Empty where the job cannot be started from here. */
  readonly commands: readonly (readonly string[])[];
  /** Absolute path of the folder that the commands are run in. */
  readonly workingDir: string;
  /** Environment variables of the commands, beside those of the program. Values may be secrets. */
  readonly variables: Readonly<Record<string, string>>;
  /** Name of the engine's target; shown to clients, and nothing else. */
  readonly targetName: string | null;
  /** Threads of the engine; shown to clients, and nothing else. */
  readonly threads: number | null;
  /** A run that takes longer is interrupted, in milliseconds; `null` for no limit. */
  readonly timeoutMs: number | null;
}
