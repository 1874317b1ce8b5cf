import { choiceSetting, type Setting } from './setting.js';

/** Where artifacts are kept. */
export interface ArtifactPlace {
  readonly bucket: string;
  /** Empty, or with `/` at its end. */
  readonly prefix: string;
}

/** The setting that says where artifacts of runs are kept. */
export const artifactsSetting: Setting<ArtifactPlace | 'folder'> = {
  placeholder: 'folder|s3://BUCKET/PREFIX',
  summary: "where artifacts of runs are kept: the data folder's artifacts, or an S3-compatible bucket",
  expected: 'folder, or a bucket such as s3://my-bucket/run-bridge',
  defaultText: 'folder',
  parse: parsePlace,
  format: (value) => (value === 'folder' ? value : `s3://${value.bucket}/${value.prefix}`.replace(/\/+$/, '')),
};

/** The setting that says where the bucket's server is. */
export const artifactsEndpointSetting: Setting<string> = {
  placeholder: 'URL|auto',
  summary: "URL of the bucket's server; auto is AWS_ENDPOINT_URL_S3, AWS_ENDPOINT_URL, else AWS itself",
  expected: 'a URL such as https://minio.example.com:9000, or auto',
  defaultText: 'auto',
  parse: parseEndpoint,
  format: (value) => value,
};

/** The setting that says in which region the bucket is. */
export const artifactsRegionSetting: Setting<string> = {
  placeholder: 'REGION|auto',
  summary: "the bucket's region; auto is AWS_REGION, AWS_DEFAULT_REGION, else us-east-1",
  expected: 'a region such as eu-central-1, or auto',
  defaultText: 'auto',
  parse: (text) => (/^[a-z0-9-]{1,64}$/i.test(text.trim()) ? text.trim().toLowerCase() : undefined),
  format: (value) => value,
};

/** How the bucket is named in requests. */
export const PATH_STYLES = ['auto', 'on', 'off'] as const;

/** The setting that says where in a request the bucket's name stands. */
export const artifactsPathStyleSetting: Setting<(typeof PATH_STYLES)[number]> = choiceSetting(
  PATH_STYLES,
  'auto',
  "whether the bucket stands in the path of URLs (on) or in the host's name (off); auto is on where an endpoint is set",
);

/** @returns the URL without a slash at its end, or `auto` */
export function parseEndpoint(text: string): string | undefined {
  if (text.trim().toLowerCase() === 'auto') return 'auto';
  const url = URL.canParse(text.trim()) ? new URL(text.trim()) : undefined;
  // One with a user or a password in it would be logged.
  if (url === undefined || !/^https?:$/.test(url.protocol) || url.username !== '' || url.password !== '') {
    return undefined;
  }
  return url.origin + url.pathname.replace(/\/+$/, '');
}

function parsePlace(text: string): ArtifactPlace | 'folder' | undefined {
  const trimmed = text.trim();
  if (trimmed.toLowerCase() === 'folder') return 'folder';
  const [, bucket = '', path = ''] = /^s3:\/\/([a-z0-9][a-z0-9._-]{1,253}[a-z0-9])(\/.*)?$/i.exec(trimmed) ?? [];
  const names = path.split('/').filter((name) => name !== '');
  const isSafe = names.every((name) => /^[\w!.*'()-]{1,100}$/.test(name) && name !== '.' && name !== '..');
  if (bucket === '' || !isSafe || names.length > 8) return undefined;
  return { bucket, prefix: names.map((name) => `${name}/`).join('') };
}
