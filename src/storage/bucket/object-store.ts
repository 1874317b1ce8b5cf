import type { Readable } from 'node:stream';
import type { TraceId } from '../../record/telemetry-record.js';

/** Objects of a bucket by their keys, which are meant below the configured prefix. All methods throw `ArtifactError`. */
export interface ObjectStore {
  /** Durable when it resolves. */
  put(key: string, bytes: Uint8Array): Promise<void>;
  /** Uploads the first `sizeBytes` of a file, streamed. */
  putFile(key: string, path: string, sizeBytes: number): Promise<void>;
  /** Returns a part of an object, or all of it; `undefined` if it does not exist. @param toByte exclusive */
  get(key: string, fromByte?: number, toByte?: number): Promise<Buffer | undefined>;
  /** Returns an object as a stream; read it to its end, or destroy it. `undefined` if it does not exist. */
  open(key: string): Promise<Readable | undefined>;
  /** Removes objects; missing ones are ignored. */
  remove(keys: readonly string[]): Promise<void>;
  /** Lists keys that begin so, in their order. */
  list(prefix: string): Promise<readonly string[]>;
}

/** Returns what keys of a trace's objects in the bucket begin with, where several processes share it. */
export function tracePrefix(traceId: TraceId): string {
  return `runs/${traceId}/`;
}

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
