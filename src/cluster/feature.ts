import { randomUUID } from 'node:crypto';
import { join } from 'node:path';
import type { SharedLogOpening } from '../run/shared-record-log.js';
import type { S3Location } from '../storage/bucket/s3-location.js';

// The door of several processes that share the work: no other folder imports anything else of this one, and none but the
// composition imports this. The rest of the program sees a SharedRecordLog. What it consists of is loaded where it is asked for.

/** Settings that several processes go by. */
export interface ClusterConfig {
  readonly 'data-dir': string;
  /** In milliseconds. */
  readonly 'invocation-silence': number;
}

/** Where record logs and files of runs are on this machine, in `runs/`: copies of what is in the bucket. */
export function clusterFolder(config: Pick<ClusterConfig, 'data-dir'>): string {
  return join(config['data-dir'], 'cluster');
}

/**
 * Opens the record log that this process shares with others: a journal in a bucket, and its order in the database.
 * @param folderId of the data folder
 */
export async function openCluster(
  config: ClusterConfig,
  { bucket, folderId }: { readonly bucket: S3Location; readonly folderId: string },
): Promise<SharedLogOpening> {
  const [{ Cluster }, { ProcessIdentity }] = await Promise.all([import('./cluster.js'), import('./membership.js')]);
  const identity = new ProcessIdentity(folderId, () => randomUUID());
  const folder = clusterFolder(config);
  const silenceMs = config['invocation-silence'];
  return { fence: identity, folder, create: (host) => new Cluster({ bucket, folder, identity, silenceMs }, host) };
}
