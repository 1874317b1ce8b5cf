import type { Configuration } from '../config/configuration.js';
import type { S3Location } from '../store/bucket/s3-location.js';

/** The bucket of a configuration; `null` where things are kept in the data folder. */
export function bucketOf(configuration: Configuration): S3Location | null {
  const { artifacts, bucketEnvironment } = configuration;
  if (artifacts === 'folder') return null;
  const chosen = (value: string) => (value === 'auto' ? null : value);
  const endpoint = chosen(configuration['artifacts-endpoint']) ?? bucketEnvironment?.endpoint ?? null;
  const style = configuration['artifacts-path-style'];
  return {
    ...artifacts,
    endpoint,
    region: chosen(configuration['artifacts-region']) ?? bucketEnvironment?.region ?? 'us-east-1',
    isPathStyle: style === 'auto' ? endpoint !== null : style === 'on',
    credentials: bucketEnvironment?.credentials ?? null,
  };
}
