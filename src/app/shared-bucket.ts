import { sharedBucketOf } from '../config/bucket-of.js';
import type { Configuration } from '../config/configuration.js';
import { type Lazy, lazy } from '../core/lazy.js';
import type { S3ObjectStore } from '../storage/bucket/s3-bucket.js';

/** The bucket that several processes share. @throws ConfigurationError if there is none */
export function sharedBucket(configuration: Configuration): Lazy<S3ObjectStore> {
  return lazy(async () => {
    const location = sharedBucketOf(configuration);
    const { S3ObjectStore: Store } = await import('../storage/bucket/s3-bucket.js');
    return new Store(location);
  });
}
