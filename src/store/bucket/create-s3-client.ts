import { S3Client } from '@aws-sdk/client-s3';
import { state as sdkState } from '@aws-sdk/core/client';
import type { S3Location } from './s3-location.js';

/** How often a request is made. */
const MAX_ATTEMPTS = 4;
/** How long a connection may take, and how long it may be silent, in milliseconds. */
const CONNECT_MS = 5_000;
const SILENCE_MS = 60_000;

/** A client of the server that has a bucket. @param silenceMs how long a connection may be silent; default 60,000 */
export function createS3Client(
  { endpoint, region, isPathStyle, credentials }: S3Location,
  silenceMs = SILENCE_MS,
): S3Client {
  // Else it writes to standard error that its later versions will not run on Node 20; there, standard error is a command's.
  sdkState.warningEmitted = true;
  return new S3Client({
    region,
    forcePathStyle: isPathStyle,
    ...(endpoint === null ? {} : { endpoint }),
    ...(credentials === null ? {} : { credentials }),
    maxAttempts: MAX_ATTEMPTS,
    requestHandler: { connectionTimeout: CONNECT_MS, socketTimeout: silenceMs },
    // Checksums beyond what S3 asks for are something that many servers do not know.
    requestChecksumCalculation: 'WHEN_REQUIRED',
    responseChecksumValidation: 'WHEN_REQUIRED',
  });
}
