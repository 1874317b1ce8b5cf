import type { Readable } from 'node:stream';

/** Objects of a bucket by their keys, which are meant below the configured prefix. All methods throw `ArtifactError`. */
export interface ObjectStore {
  /** Durable when it resolves. */
  put(key: string, bytes: Uint8Array): Promise<void>;
  /** Uploads the first `sizeBytes` of a file, streamed. */
  putFile(key: string, path: string, sizeBytes: number): Promise<void>;
  /** A part of an object, or all of it; `undefined` where there is none. @param toByte exclusive */
  get(key: string, fromByte?: number, toByte?: number): Promise<Buffer | undefined>;
  /** An object as it is read; it has to be read to its end, or destroyed. `undefined` where there is none. */
  open(key: string): Promise<Readable | undefined>;
  /** Removes objects; one that is not there is passed over. */
  remove(keys: readonly string[]): Promise<void>;
  /** Keys that begin so, in their order. */
  list(prefix: string): Promise<readonly string[]>;
}
