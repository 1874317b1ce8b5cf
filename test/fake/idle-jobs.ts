import { RunMeasures } from '../../src/api/run-measures.js';
import type { JobDefinition } from '../../src/config/jobs.js';
import type { Clock } from '../../src/core/clock.js';
import { silentLogger } from '../../src/core/logger.js';
import { createJobs, type Jobs } from '../../src/job/feature.js';
import { RecordLogFiles } from '../../src/log/record-log-files.js';
import type { State } from '../../src/storage/state.js';

/** Jobs of which nothing is run. @param measures default: those of runs of which no log is left */
export function idleJobs(
  state: State,
  clock: Clock,
  jobs: readonly JobDefinition[] = [],
  measures = new RunMeasures({
    store: state.measures,
    tracker: { find: async () => undefined },
    reader: new RecordLogFiles('/nowhere', () => {}),
    logger: silentLogger,
  }),
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
  const host = { ...launching, state, registry: { end: notHere, endUnseen: notHere }, measures, ...rest };
  return createJobs(config, host);
}
