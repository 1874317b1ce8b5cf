import type { JobDefinition } from '../../src/config/jobs.js';
import type { Clock } from '../../src/core/clock.js';
import { silentLogger } from '../../src/core/logger.js';
import { createJobs, type Jobs } from '../../src/job/feature.js';
import type { State } from '../../src/storage/state.js';

/** Jobs of which nothing is run. */
export function idleJobs(state: State, clock: Clock, jobs: readonly JobDefinition[] = []): Jobs {
  const notHere = () => Promise.reject(new Error('nothing is run here'));
  const config = {
    'data-dir': '',
    jobs,
    'max-running-jobs': 1,
    processes: 'one',
    redaction: 'literals',
    'public-url': 'off',
  } as const;
  const launching = { nodePath: '', entryPath: '', environment: {}, credentials: () => ({}) };
  const host = { ...launching, state, registry: { end: notHere }, clock, logger: silentLogger, version: '0.0.0' };
  return createJobs(config, host);
}
