import { type BigIntStats, closeSync, constants, fstatSync, openSync, readSync } from 'node:fs';
import { type FileHandle, open } from 'node:fs/promises';
import { relative, sep } from 'node:path';
import type { Readable } from 'node:stream';
import { closeOnFailure, errorCode } from '../core/errors.js';

/** A path below a step's artifacts, for example `compiled/shop/models/orders.sql`: names with `/` between them, safe to use anywhere. */
export type ArtifactPath = string & { readonly __brand: 'ArtifactPath' };

/** Maximum length of a path, in bytes of UTF-8; a bucket accepts keys of 1,024 bytes including the prefix. */
const MAX_PATH_BYTES = 800;
/** The longest name in it, in bytes of UTF-8; file systems take 255. */
const MAX_NAME_BYTES = 240;
/** Folders are not nested deeper than this. */
const MAX_DEPTH = 32;

/**
 * Parses an artifact's path; `undefined` if it is invalid: an absolute path, one with `.`, `..` or an empty name in it, with a
 * backslash or a control character, not well-formed Unicode, longer than 800 bytes, deeper than 32 folders, or with a name
 * longer than 240 bytes. Nothing is normalised: an unsafe path is refused.
 */
export function parseArtifactPath(text: string): ArtifactPath | undefined {
  if (Buffer.byteLength(text) > MAX_PATH_BYTES || UNSAFE.test(text)) return undefined;
  const names = text.split('/');
  if (names.length > MAX_DEPTH) return undefined;
  const isSafe = names.every(
    (name) => name !== '' && name !== '.' && name !== '..' && Buffer.byteLength(name) <= MAX_NAME_BYTES,
  );
  return isSafe ? (text as ArtifactPath) : undefined;
}

/** Returns the path that a file below a folder has as an artifact; `undefined` where it cannot have one. */
export function artifactPathIn(folder: string, file: string): ArtifactPath | undefined {
  return parseArtifactPath(relative(folder, file).split(sep).join('/'));
}

/** Returns the path as it stands in a URL. */
export function encodedArtifactPath(path: string): string {
  return path.split('/').map(encodeURIComponent).join('/');
}

/** Backslashes; control, format and private characters, line separators and halves of surrogate pairs. */
const UNSAFE = /[\\\p{Cc}\p{Cf}\p{Co}\p{Cs}\p{Zl}\p{Zp}]/u;

/** Which engine command's telemetry is meant. */
export interface StepTelemetry {
  /** Position of the step in its run, from 1. */
  readonly stepIndex: number;
  /** Which of the step's engine commands, from 1. */
  readonly number: number;
}

/** The folder of telemetry among a step's artifacts. */
export const TELEMETRY_FOLDER = 'metadata' as ArtifactPath;

/** Returns where a step's telemetry is among its artifacts. @param number which of its engine commands, from 1 */
export function telemetryPath(stepIndex: number, number: number): ArtifactPath {
  const rest = number === 1 ? '' : `-${number}`;
  // Safe as it stands.
  return `${TELEMETRY_FOLDER}/telemetry-${stepIndex}-otel${rest}.parquet` as ArtifactPath;
}

/** Returns where the telemetry of a step's engine commands is, as far as it is saved. */
export function telemetryPaths(step: {
  readonly index: number;
  readonly invocations: readonly { readonly isSaved: boolean }[];
}): readonly ArtifactPath[] {
  return step.invocations.flatMap(({ isSaved }, at) => (isSaved ? [telemetryPath(step.index, at + 1)] : []));
}

/** Returns what such a path means; `undefined` for any other. */
export function stepTelemetryOf(path: string): StepTelemetry | undefined {
  const [, step, number] = /^metadata\/telemetry-([1-9]\d{0,8})-otel(?:-([1-9]\d{0,8}))?\.parquet$/.exec(path) ?? [];
  return step === undefined ? undefined : { stepIndex: Number(step), number: Number(number ?? 1) };
}

/** What a command wrote to standard output and error, among the artifacts of its step: one file where both went to one. */
export const COMMAND_OUTPUTS = {
  both: 'output.txt' as ArtifactPath,
  stdout: 'stdout.txt' as ArtifactPath,
  stderr: 'stderr.txt' as ArtifactPath,
} as const;

/** Which artifact is meant. */
export interface ArtifactKey {
  /** Of the run; see `StepPosition`. */
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
  /** Lists a step's artifacts, sorted by path; none for an unknown step. */
  list(runId: number, stepIndex: number): Promise<readonly Artifact[]>;
  /** Lists a folder of a step's artifacts; nothing for an unknown one. @param folder empty for that of the step */
  listFolder(runId: number, stepIndex: number, folder: ArtifactPath | ''): Promise<ArtifactFolder>;
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
  /** Ends its connections; nothing may be called afterwards. */
  close(): void;
}

/** What a folder has, without what its folders have; both sorted by path. */
export interface ArtifactFolder {
  /** Paths of the folders in it. */
  readonly folders: readonly ArtifactPath[];
  readonly files: readonly Artifact[];
}

/** How many artifacts, and what they take. */
export interface ArtifactUsage {
  readonly count: number;
  readonly sizeBytes: number;
}

// Files as artifacts: only regular files count.

/** What is read in one piece, in bytes: 256 KiB. */
const CHUNK_BYTES = 256 * 1024;
/** Error codes for a path that is not a file. */
const ABSENT: ReadonlySet<string> = new Set(['ENOENT', 'ENOTDIR', 'ELOOP', 'EISDIR', 'ENXIO']);

/** Returns whether an error means that the file does not exist. */
export function isAbsent(error: unknown): boolean {
  return ABSENT.has(errorCode(error) ?? '');
}

/** Opens a file for reading; `undefined` if it does not exist. Links, folders and pipes do not count. */
export async function openRegularFile(path: string): Promise<FileHandle | undefined> {
  try {
    // Non-blocking: opening a named pipe would wait for its writer.
    const handle = await open(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
    if ((await closeOnFailure(handle, () => handle.stat())).isFile()) return handle;
    await handle.close();
    return undefined;
  } catch (error) {
    if (isAbsent(error)) return undefined;
    throw error;
  }
}

/** Returns an open file as an artifact of a path. */
export async function describeFile(handle: FileHandle, path: ArtifactPath): Promise<Artifact> {
  return describeStats(await handle.stat({ bigint: true }), path);
}

/** Returns a file as an artifact of a path. */
export function describeStats({ size, mtimeNs, mtimeMs, ino }: BigIntStats, path: ArtifactPath): Artifact {
  // Files are replaced, never written over, so another content has another number or time.
  const etag = `"${ino.toString(16)}-${size.toString(16)}-${mtimeNs.toString(16)}"`;
  return { path, sizeBytes: Number(size), modifiedUnixMs: Number(mtimeMs), etag };
}

/** Returns the bytes of an open file, which is closed with them. */
export function readFileOf(handle: FileHandle, range: ByteRange | undefined): Readable {
  // Without `end` where everything is wanted: an empty file has no last byte.
  const part = range === undefined ? {} : { start: range.from, end: range.to - 1 };
  return handle.createReadStream({ ...part, highWaterMark: CHUNK_BYTES });
}

/**
 * Why an artifact could not be read or stored.
 * - `full`: the disk or the bucket's quota is used up.
 * - `tooLarge`: it exceeds the maximum size of an artifact.
 * - `tooMany`: the step has reached its maximum number of artifacts, or their maximum total size.
 * - `conflict`: its name is that of a folder of other artifacts, or the other way round.
 * - `refused`: repeating the request will not help: no permission, or no such bucket.
 * - `unavailable`: the storage does not answer, or fails; the request can be repeated.
 */
export type ArtifactErrorCode = 'full' | 'tooLarge' | 'tooMany' | 'conflict' | 'refused' | 'unavailable';

/** An artifact could not be read or stored. The message names its path or object and says how to fix it. */
export class ArtifactError extends Error {
  override readonly name = 'ArtifactError';
  constructor(
    readonly code: ArtifactErrorCode,
    message: string,
    options?: ErrorOptions,
  ) {
    super(message, options);
  }
}

/** How much one step may leave behind. */
export interface ArtifactLimits {
  /** Files. */
  readonly maxCount: number;
  /** Each file, in bytes. */
  readonly maxFileBytes: number;
  /** All of them, in bytes. */
  readonly maxTotalBytes: number;
}

/** The limits of a step beside that of each file, which is a setting: 20,000 files of 1 GiB together. */
export const STEP_LIMITS = { maxCount: 20_000, maxTotalBytes: 1024 ** 3 } as const;

/** Receives artifacts of steps: a store of this process, or a bridge that runs. */
export interface ArtifactSink {
  /**
   * Keeps a file as an artifact, whole or not at all.
   * @param file its path; a symbolic link is not followed
   * @throws ArtifactError; what `signal` aborts with
   */
  put(key: ArtifactKey, file: string, signal: AbortSignal): Promise<void>;
}

/** Brings artifacts to a store of this process. */
export class StoreArtifactSink implements ArtifactSink {
  /** @param open gives the store; called when the first artifact comes */
  constructor(private readonly openStore: () => Promise<Pick<ArtifactStore, 'put'>>) {}

  async put(key: ArtifactKey, file: string, signal: AbortSignal): Promise<void> {
    const store = await this.openStore();
    signal.throwIfAborted();
    // What has become a named pipe meanwhile is not waited for.
    const descriptor = openSync(file, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
    try {
      await store.put(key, contentOf(descriptor, signal));
    } finally {
      closeSync(descriptor);
    }
  }
}

/** What is read in one piece, in bytes: 64 KiB. */
const SINK_CHUNK_BYTES = 64 * 1024;

/**
 * Read at once: the command has just written it, so the system has it in memory. Most artifacts are small, and to ask the pool of
 * threads for each of their pieces would take longer than all else.
 */
async function* contentOf(descriptor: number, signal: AbortSignal): AsyncGenerator<Uint8Array> {
  const { size } = fstatSync(descriptor);
  // With room for one byte more than it has: what ends before that was read whole.
  let length = Math.min(size + 1, SINK_CHUNK_BYTES);
  for (let readBytes = 0; ; length = SINK_CHUNK_BYTES) {
    signal.throwIfAborted();
    const buffer = Buffer.allocUnsafe(length);
    const bytesRead = readSync(descriptor, buffer, 0, length, null);
    readBytes += bytesRead;
    if (bytesRead > 0) yield buffer.subarray(0, bytesRead);
    // A read may give less than it could before the end of the file.
    if (bytesRead === 0 || (bytesRead < length && readBytes >= size)) return;
  }
}
