import { pipeline } from 'node:stream/promises';
import type { Request, Response } from 'express';
import type { ArtifactPath } from '../../store/artifact/artifact-path.js';
import type { Artifact, ByteRange, OpenArtifact } from '../../store/artifact/artifact-store.js';
import { ApiError } from '../api-error.js';
import { contentTypeOf } from './content-type.js';

/** An artifact to answer with. */
export interface SendableArtifact {
  readonly artifact: Artifact;
  /** Opens it, or a part of it; `undefined` where it has gone meanwhile. */
  open(range?: ByteRange): Promise<OpenArtifact | undefined>;
}

/**
 * Answers GET or HEAD with a file as it is: whole, or the one range that was asked for (206, 416), or 304 where the client
 * has it. Several ranges are answered with the whole. The file is offered for saving, so that no browser runs what is in it.
 * @throws ApiError
 */
export async function sendArtifact(request: Request, response: Response, sendable: SendableArtifact): Promise<void> {
  const { artifact } = sendable;
  describe(response, artifact);
  if (request.fresh) {
    response.status(304).end();
    return;
  }
  const range = rangeIn(request, response, artifact);
  if (request.method === 'HEAD') {
    begin(response, artifact, range);
    response.end();
    return;
  }
  const opened = await sendable.open(range);
  // Replaced since it was looked at, a range of it would be a piece of something else; the whole of it is as good.
  const isReplaced = opened?.artifact.etag !== artifact.etag;
  if (opened === undefined || (isReplaced && range !== undefined)) {
    opened?.content.destroy();
    throw new ApiError(503, 'The artifact is being replaced; ask again.', { 'Retry-After': '1' });
  }
  try {
    if (isReplaced) describe(response, opened.artifact);
    begin(response, opened.artifact, range);
  } catch (error) {
    opened.content.destroy();
    throw error;
  }
  // Whoever went away in the middle is nobody to tell; an answer that broke off is cut off, by its length.
  await pipeline(opened.content, response).catch(() => response.destroy());
}

function describe(response: Response, { path, etag, modifiedUnixMs }: Artifact): void {
  response.attachment(nameOf(path));
  response.set({
    'Content-Type': contentTypeOf(path),
    ETag: etag,
    'Last-Modified': new Date(modifiedUnixMs).toUTCString(),
    'Accept-Ranges': 'bytes',
    'Cache-Control': 'private, no-cache',
    'X-Content-Type-Options': 'nosniff',
  });
}

function nameOf(path: ArtifactPath): string {
  return path.slice(path.lastIndexOf('/') + 1);
}

/** @throws ApiError 416 */
function rangeIn(request: Request, response: Response, { sizeBytes }: Artifact): ByteRange | undefined {
  if (!isSameAsBefore(request, response)) return undefined;
  const ranges = request.range(sizeBytes);
  if (ranges === undefined || ranges === -2) return undefined;
  if (ranges === -1) {
    for (const name of ['Content-Disposition', 'ETag', 'Last-Modified']) response.removeHeader(name);
    throw new ApiError(416, `The range lies outside the artifact, which has ${sizeBytes} bytes.`, {
      'Content-Range': `bytes */${sizeBytes}`,
    });
  }
  const [first, ...others] = ranges;
  if (first === undefined || others.length > 0 || ranges.type !== 'bytes') return undefined;
  return { from: first.start, to: first.end + 1 };
}

/** `If-Range`: the range counts only for the content that the client has the rest of. */
function isSameAsBefore(request: Request, response: Response): boolean {
  const before = request.get('If-Range');
  return before === undefined || before === response.get('ETag') || before === response.get('Last-Modified');
}

function begin(response: Response, { sizeBytes }: Artifact, range: ByteRange | undefined): void {
  const { from, to } = range ?? { from: 0, to: sizeBytes };
  response.status(range === undefined ? 200 : 206).set('Content-Length', String(to - from));
  if (range !== undefined) response.set('Content-Range', `bytes ${from}-${to - 1}/${sizeBytes}`);
}
