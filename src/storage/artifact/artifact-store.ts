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
 * Files of runs' steps: what the engine's commands left. All methods throw `ArtifactError`. Who removes an artifact while it
 * is read does not cut the reading short where the storage can help it.
 */
export interface ArtifactStore {
  /** A step's artifacts, sorted by path; none for a step that is not known. */
  list(runId: number, stepIndex: number): Promise<readonly Artifact[]>;
  /** `undefined` where there is none. */
  stat(key: ArtifactKey): Promise<Artifact | undefined>;
  /** Opens an artifact, or a part of it; `undefined` where there is none. */
  open(key: ArtifactKey, range?: ByteRange): Promise<OpenArtifact | undefined>;
  /**
   * Keeps an artifact, whole or not at all: until everything is there, and where `content` fails, an earlier one of its path
   * stays what it was. Durable when it resolves. What `content` throws is thrown on.
   */
  put(key: ArtifactKey, content: AsyncIterable<Uint8Array>): Promise<void>;
  /** Removes one; false where there is none. */
  remove(key: ArtifactKey): Promise<boolean>;
  /** Removes all that a run has. @returns how much that was. */
  removeRun(runId: number): Promise<ArtifactUsage>;
  /** What there is of a run; of all runs where none is said. */
  usage(runId?: number): Promise<ArtifactUsage>;
}

/** How many artifacts, and what they take. */
export interface ArtifactUsage {
  readonly count: number;
  readonly sizeBytes: number;
}
