import type { Configuration } from '../config/configuration.js';
import type { S3ObjectStore } from '../store/bucket/s3-object-store.js';
import { sharedBucketOf } from './bucket-of.js';

/** The bucket that several processes share, opened when it is first asked for. */
export class SharedBucket {
  private opening: Promise<S3ObjectStore> | undefined;

  constructor(private readonly configuration: Configuration) {}

  /** @throws ConfigurationError where there is none */
  open(): Promise<S3ObjectStore> {
    this.opening ??= openBucket(this.configuration);
    return this.opening;
  }

  async close(): Promise<void> {
    (await this.opening?.catch(() => undefined))?.close();
  }
}

async function openBucket(configuration: Configuration): Promise<S3ObjectStore> {
  const location = sharedBucketOf(configuration);
  const { S3ObjectStore } = await import('../store/bucket/s3-object-store.js');
  return new S3ObjectStore(location);
}
