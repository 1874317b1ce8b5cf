import { S3ServiceException } from '@aws-sdk/client-s3';
import { errorCode } from '../../component/error-code.js';
import { reasonOf } from '../../component/reason-of.js';
import { ArtifactError, type ArtifactErrorCode } from '../artifact/artifact-error.js';
import type { S3Location } from './s3-location.js';

/** Whether an answer says that there is no such object. */
export function isMissing(error: unknown): boolean {
  // An answer without a body has no name of its own.
  return error instanceof S3ServiceException && statusOf(error) === 404 && error.name !== 'NoSuchBucket';
}

/** What S3, or the way there, failed with, in words for whoever runs the bridge. */
export function toArtifactError(cause: unknown, { bucket, endpoint }: S3Location): ArtifactError {
  const where = `the bucket ${bucket}${endpoint === null ? '' : ` at ${endpoint}`}`;
  const { code, text } = judge(cause);
  return new ArtifactError(code, `${where} ${text}`, { cause });
}

function judge(cause: unknown): { code: ArtifactErrorCode; text: string } {
  if (!(cause instanceof S3ServiceException)) return { code: 'unavailable', text: notReached(cause) };
  const { name } = cause;
  const status = statusOf(cause);
  if (FULL.has(name) || status === 507) return { code: 'full', text: `is full (${name}): free some space in it` };
  if (name === 'EntityTooLarge') return { code: 'tooLarge', text: `takes no object as large as this (${name})` };
  if (name === 'NoSuchBucket') return { code: 'refused', text: 'does not exist: create it, or correct --artifacts' };
  if (status === 301) return { code: 'refused', text: `is in another region (${name}): set --artifacts-region` };
  if (status === 401 || status === 403) {
    const advice = 'AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY must be of somebody who may read and write it';
    return { code: 'refused', text: `does not let us in (${name}): ${advice}` };
  }
  return { code: 'unavailable', text: `failed (${[status, name].filter(Boolean).join(' ')}): ${cause.message}` };
}

function notReached(cause: unknown): string {
  if (cause instanceof Error && cause.name === 'CredentialsProviderError') {
    return 'needs credentials: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY';
  }
  // A host with several addresses that all fail gives an error without a message of its own.
  const first: unknown = cause instanceof AggregateError ? cause.errors[0] : cause;
  const reason = errorCode(first) ?? reasonOf(first);
  return `cannot be reached (${reason}): check --artifacts-endpoint and the network`;
}

/** Names that servers give a quota or a disk that is used up. */
const FULL: ReadonlySet<string> = new Set(['QuotaExceeded', 'XMinioStorageFull', 'XMinioAdminBucketQuotaExceeded']);

function statusOf(error: S3ServiceException): number | undefined {
  return error.$metadata.httpStatusCode;
}
