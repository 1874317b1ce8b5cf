import { LiveRuns } from '../../src/api/live-runs.js';
import { RunMeasures } from '../../src/api/run-measures.js';
import type { JobDefinition } from '../../src/config/jobs.js';
import type { Clock } from '../../src/core/clock.js';
import { silentLogger } from '../../src/core/logger.js';
import { createJobs, type JobHost, type Jobs } from '../../src/job/feature.js';
import { RecordLogFiles } from '../../src/log/record-log-files.js';
import type { State } from '../../src/storage/state.js';

/** What is read of runs of which no log is left. */
function withoutLogs({ measures: store, catalog }: State): Pick<JobHost, 'live'> & { readonly measures: RunMeasures } {
  const reader = new RecordLogFiles('/nowhere', () => {});
  const measures = new RunMeasures({ store, tracker: { find: async () => undefined }, reader, logger: silentLogger });
  return { measures, live: new LiveRuns({ catalog, measures, reader }) };
}

/** Jobs of which nothing is run. */
export function idleJobs(
  state: State,
  clock: Clock,
  jobs: readonly JobDefinition[] = [],
  { measures, live } = withoutLogs(state),
): Jobs {
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
  const rest = { clock, logger: silentLogger, version: '0.0.0' };
  const host = { ...launching, state, registry: { end: notHere, endUnseen: notHere }, measures, live, ...rest };
  return createJobs(config, host);
}
