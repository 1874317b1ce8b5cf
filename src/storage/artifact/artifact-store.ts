import type { Readable } from 'node:stream';
import type { ArtifactPath } from './artifact-path.js';

/** Which artifact is meant. */
export interface ArtifactKey {
  /** Of the run; see `StepPlace`. */
  readonly runId: number;
  /** Position of the step in its run, from 1. */
  readonly stepIndex: number;
  readonly path: ArtifactPath;
}

/** An artifact as it is listed. */
export interface Artifact {
  readonly path: ArtifactPath;
  readonly sizeBytes: number;
  readonly modifiedUnixMs: number;
  /** An HTTP entity tag with its quotes; another one for other content. */
  readonly etag: string;
}

/** Part of an artifact, in bytes. */
export interface ByteRange {
  /** The first byte, from 0; below the artifact's size. */
  readonly from: number;
  /** Behind the last byte; more than `from`, at most the artifact's size. */
  readonly to: number;
}

/** An artifact to read. */
export interface OpenArtifact {
  readonly artifact: Artifact;
  /** Its bytes as they are read; it has to be read to its end, or destroyed. */
  readonly content: Readable;
}

/**
 * Files of runs' steps, written by the engine's commands. All methods throw `ArtifactError`. Removing an artifact while it
 * is read does not interrupt the reading if the storage supports that.
 */
export interface ArtifactStore {
  /** A step's artifacts, sorted by path; none for an unknown step. */
  list(runId: number, stepIndex: number): Promise<readonly Artifact[]>;
  /** `undefined` if it does not exist. */
  stat(key: ArtifactKey): Promise<Artifact | undefined>;
  /** Opens an artifact, or a part of it; `undefined` if it does not exist. */
  open(key: ArtifactKey, range?: ByteRange): Promise<OpenArtifact | undefined>;
  /**
   * Stores an artifact atomically: until it is complete, and if `content` fails, an earlier one with its path
   * stays unchanged. Durable when it resolves. Errors of `content` are rethrown.
   */
  put(key: ArtifactKey, content: AsyncIterable<Uint8Array>): Promise<void>;
  /** Removes one; false if it does not exist. */
  remove(key: ArtifactKey): Promise<boolean>;
  /** Removes all artifacts of a run. @returns their count and size */
  removeRun(runId: number): Promise<ArtifactUsage>;
  /** Count and size of a run's artifacts; of all runs by default. */
  usage(runId?: number): Promise<ArtifactUsage>;
}

/** How many artifacts, and what they take. */
export interface ArtifactUsage {
  readonly count: number;
  readonly sizeBytes: number;
}
