import type { Writable } from 'node:stream';
import type { Environment } from '../config/environment.js';
import type { Clock } from '../core/clock.js';
import type { Machine } from '../core/guard.js';
import type { Logger } from '../core/logger.js';

/** What the program gets from outside. */
export interface AppDeps {
  readonly clock: Clock;
  readonly logger: Logger;
  /** The memory of the machine and of the process. */
  readonly machine: Machine;
  /** The stream for `jsonl: "-"`. */
  readonly stdout: Writable;
  /** The process id, for the lock's message. */
  readonly pid: number;
  /** Addresses and names of this machine, to recognise a destination that is the program itself. */
  readonly ownHosts: readonly string[];
  /** Returns a random number in [0, 1). */
  readonly random: () => number;
  /** The program's version. */
  readonly version: string;
  /** The environment of the program, and the paths of Node and of the program's entry file, with which commands of jobs are started. */
  readonly environment: Environment;
  readonly nodePath: string;
  /** The version of Node, without `v`. */
  readonly nodeVersion: string;
  readonly entryPath: string;
}
