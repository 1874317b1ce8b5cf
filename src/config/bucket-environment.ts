import type { BucketEnvironment, ConfigurationRow } from './configuration.js';
import { type Environment, nonEmpty } from './environment.js';
import { MASK } from './mask.js';

const KEY_ID = 'AWS_ACCESS_KEY_ID';
const SECRET = 'AWS_SECRET_ACCESS_KEY';
const SESSION = 'AWS_SESSION_TOKEN';
const REGIONS = ['AWS_REGION', 'AWS_DEFAULT_REGION'] as const;
const ENDPOINTS = ['AWS_ENDPOINT_URL_S3', 'AWS_ENDPOINT_URL'] as const;

/** Reads what AWS' own variables say of a bucket; asked only where one is configured. */
export function readBucketEnvironment(environment: Environment): {
  readonly bucket: BucketEnvironment;
  readonly problems: readonly string[];
  readonly rows: readonly ConfigurationRow[];
} {
  const of = (name: string) => nonEmpty(environment[name])?.trim();
  const first = (names: readonly string[]) => names.map(of).find((value) => value !== undefined) ?? null;
  const [accessKeyId, secretAccessKey, sessionToken] = [of(KEY_ID), of(SECRET), of(SESSION)];
  const isHalf = (accessKeyId === undefined) !== (secretAccessKey === undefined);
  const session = sessionToken === undefined ? {} : { sessionToken };
  const credentials =
    accessKeyId === undefined || secretAccessKey === undefined ? null : { accessKeyId, secretAccessKey, ...session };
  return {
    bucket: { credentials, region: first(REGIONS), endpoint: first(ENDPOINTS) },
    problems: isHalf
      ? [`${accessKeyId === undefined ? KEY_ID : SECRET}: is not set, but its counterpart is; set both`]
      : [],
    rows: [KEY_ID, SECRET, SESSION]
      .filter((name) => of(name) !== undefined)
      .map((name) => ({ name: name.toLowerCase().replaceAll('_', '-'), value: MASK, origin: name })),
  };
}
