import { join } from 'node:path';
import type { Configuration } from '../config/configuration.js';

/** Where record logs and files of runs are on this machine, in `runs/`, where several processes share the work: copies of what is in the bucket. */
export function clusterFolder(configuration: Pick<Configuration, 'data-dir'>): string {
  return join(configuration['data-dir'], 'cluster');
}
