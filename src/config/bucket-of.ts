import type { S3Location } from '../storage/bucket/object-store.js';
import type { Configuration } from './configuration.js';

/** Returns the configured bucket; `null` if artifacts are stored in the data folder. */
export function bucketOf(configuration: Configuration): S3Location | null {
  const { artifacts, bucketEnvironment } = configuration;
  if (artifacts === 'folder') return null;
  const endpoint = artifacts.endpoint ?? bucketEnvironment?.endpoint ?? null;
  return {
    ...artifacts,
    endpoint,
    region: artifacts.region ?? bucketEnvironment?.region ?? 'us-east-1',
    isPathStyle: artifacts.isPathStyle ?? endpoint !== null,
    credentials: bucketEnvironment?.credentials ?? null,
  };
}
