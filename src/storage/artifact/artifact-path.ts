import { relative, sep } from 'node:path';

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

/** The path that a file below a folder has as an artifact; `undefined` where it cannot have one. */
export function artifactPathIn(folder: string, file: string): ArtifactPath | undefined {
  return parseArtifactPath(relative(folder, file).split(sep).join('/'));
}

/** The path as it stands in a URL. */
export function encodedArtifactPath(path: string): string {
  return path.split('/').map(encodeURIComponent).join('/');
}

/** Backslashes; control, format and private characters, line separators and halves of surrogate pairs. */
const UNSAFE = /[\\\p{Cc}\p{Cf}\p{Co}\p{Cs}\p{Zl}\p{Zp}]/u;

/** Which engine command's telemetry is meant. */
export interface TelemetryPlace {
  /** Position of the step in its run, from 1. */
  readonly stepIndex: number;
  /** Which of the step's engine commands, from 1. */
  readonly number: number;
}

/** Where a step's telemetry is among its artifacts. @param number which of its engine commands, from 1 */
export function telemetryPath(stepIndex: number, number: number): ArtifactPath {
  const rest = number === 1 ? '' : `-${number}`;
  // Safe as it stands.
  return `metadata/telemetry-${stepIndex}-otel${rest}.parquet` as ArtifactPath;
}

/** What such a path means; `undefined` for any other. */
export function telemetryPlaceOf(path: string): TelemetryPlace | undefined {
  const [, step, number] = /^metadata\/telemetry-([1-9]\d{0,8})-otel(?:-([1-9]\d{0,8}))?\.parquet$/.exec(path) ?? [];
  return step === undefined ? undefined : { stepIndex: Number(step), number: Number(number ?? 1) };
}
