/** A bucket and the prefix in it. */
export interface S3Location {
  readonly bucket: string;
  /** What all keys begin with: empty, or with `/` at its end. */
  readonly prefix: string;
  /** URL of an S3-compatible server, for example `https://minio.example.com:9000`; `null` for AWS. */
  readonly endpoint: string | null;
  readonly region: string;
  /** Whether the bucket stands in the path (`https://host/bucket/key`) and not in the host's name. */
  readonly isPathStyle: boolean;
  /** `null` for what AWS' own library finds: a profile, the role of a container or a machine. */
  readonly credentials: S3Credentials | null;
}

/** The credentials. */
export interface S3Credentials {
  readonly accessKeyId: string;
  readonly secretAccessKey: string;
  /** Of credentials that expire. */
  readonly sessionToken?: string;
}
