import type { Writable } from 'node:stream';
import type { Environment } from '../config/environment.js';
import type { Clock } from '../core/clock.js';
import type { Machine } from '../core/guard.js';
import type { Logger } from '../core/logger.js';

/** What the program gets from outside. */
export interface AppDeps {
  readonly clock: Clock;
  readonly logger: Logger;
  /** Memory of the machine and of the process. */
  readonly machine: Machine;
  /** Where `jsonl: "-"` streams to. */
  readonly stdout: Writable;
  /** Process id, for the lock's message. */
  readonly pid: number;
  /** Addresses and names of this machine, to notice a destination that is the program itself. */
  readonly ownHosts: readonly string[];
  /** Uniform in [0, 1). */
  readonly random: () => number;
  /** The program's version. */
  readonly version: string;
  /** The environment of the program, and paths of the Node and the file that run it: commands of jobs are run with these. */
  readonly environment: Environment;
  readonly nodePath: string;
  /** Version of Node, without `v`. */
  readonly nodeVersion: string;
  readonly entryPath: string;
}
