import type { S3Location } from '../storage/bucket/object-store.js';
import type { Configuration } from './configuration.js';
import { ConfigurationError } from './configuration-error.js';

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

/** Returns the bucket that several processes share. @throws ConfigurationError if there is none */
export function sharedBucketOf(configuration: Configuration): S3Location {
  const location = bucketOf(configuration);
  if (location === null) throw new ConfigurationError(['--processes several needs a bucket: set --artifacts s3://…']);
  return location;
}
