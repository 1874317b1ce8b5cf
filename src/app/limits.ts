import { join } from 'node:path';
import type { Configuration } from '../config/configuration.js';
import type { Clock } from '../core/clock.js';
import { DataFolderOnDisk } from '../core/data-folder.js';
import { probeFolder } from '../core/folders.js';
import { DiskGuard, type Guard, type Machine, MemoryGuard } from '../core/guard.js';
import type { Health } from '../core/health.js';
import type { Component } from '../core/lifecycle.js';
import type { Logger } from '../core/logger.js';
import { WriteWatch } from '../log/write-watch.js';
import { inFlightLimit } from '../receiver/feature.js';
import { LOCK_FILE, STATE_FILE } from '../storage/data-folder.js';

/** What decides whether more is accepted. */
export interface Limits {
  readonly guards: readonly (Guard & Component)[];
  /** The guard of the disk. */
  readonly disk: DiskGuard;
  /** The guard of the memory. */
  readonly memory: MemoryGuard;
  /** Watches whether records can be written. */
  readonly watch: WriteWatch;
  /** The most memory for all bodies in flight, in bytes. */
  readonly maxInFlightBytes: number;
}

/** Dependencies of the limits. */
export interface LimitsDeps {
  readonly machine: Machine;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly health: Health;
}

/** Creates the limits of a configuration. */
export function createLimits(configuration: Configuration, deps: LimitsDeps): Limits {
  const { 'data-dir': path, 'max-memory': maxMemoryBytes } = configuration;
  const disk = { path, maxBytes: maxDiskBytes(configuration), reserveBytes: reserveBytes(configuration) };
  // If the state is in a database server, the file of the lock stays open instead.
  const anchor = configuration['database-url'] === 'off' ? STATE_FILE : LOCK_FILE;
  const folder = new DataFolderOnDisk(path, anchor);
  const guard = new DiskGuard(disk, { ...deps, folder });
  const memory = new MemoryGuard(maxMemoryBytes, deps);
  return {
    guards: [guard, memory],
    disk: guard,
    memory,
    watch: new WriteWatch({ ...deps, probe: () => probeFolder(join(path, 'runs')) }),
    maxInFlightBytes: inFlightLimit(maxMemoryBytes),
  };
}

function maxDiskBytes({ 'max-disk': setting }: Configuration): number | null {
  return setting === 'off' ? null : setting;
}

function reserveBytes({ 'disk-reserve': setting }: Configuration): number | null {
  if (setting === 'auto') return null;
  return setting === 'off' ? 0 : setting;
}
