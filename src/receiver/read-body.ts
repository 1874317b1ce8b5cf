import type { Readable, Transform } from 'node:stream';
import { createGunzip, createInflate, createInflateRaw } from 'node:zlib';
import { BodyBuffer } from './body-buffer.js';
import type { BodyPool } from './body-pool.js';
import type { Reservation } from './byte-budget.js';
import { NO_ROOM, RequestError } from './request-error.js';
import type { ContentCoding } from './request-format.js';

/** How much a body may be. */
export interface BodyRoom {
  /** Limit of the body, in bytes: as it comes over the wire, and again after inflating. */
  readonly maxBodyBytes: number;
  /** Grows with the body; when it cannot, the body is given up. */
  readonly reservation: Reservation;
  /** Where the memory comes from. */
  readonly pool: BodyPool;
}

/** How a body comes. */
export interface BodyShape {
  readonly coding: ContentCoding;
  /** Its length on the wire; 0 where it is unknown. */
  readonly announcedBytes: number;
  /** Whether a body of another length is refused; HTTP/1 sees to that itself. */
  readonly isExact?: boolean;
  /** Ends the reading with its reason. */
  readonly stop?: AbortSignal;
}

/** Output is taken from zlib in pieces of this size, in bytes: a bomb is noticed at most one piece beyond the limit. */
const INFLATED_CHUNK_BYTES = 64 * 1024;

/**
 * Reads a request's body whole and inflated, counting while it comes, from HTTP/1 or a stream of HTTP/2. What is left of a body that was given up is thrown
 * away as it arrives, so that the sender can read the answer; the request time-out bounds that.
 *
 * `express.raw()` reads the same way, yet knows no raw deflate, takes brotli, does not count what comes in but inflates
 * to nothing, keeps pieces one by one, waits for the whole of a body that it has refused, and never settles when the sender of a compressed one goes away.
 *
 * @returns the body; whoever has read it calls its `release`.
 * @throws RequestError `too_large`, `busy` (the reservation cannot grow), `malformed` (not that coding or length, or cut off), `aborted`; the reason of `stop`.
 */
export function readBody(request: Readable, shape: BodyShape, room: BodyRoom): Promise<BodyBuffer> {
  const { coding, announcedBytes, isExact = false, stop } = shape;
  return new Promise((resolve, reject) => {
    const body = new BodyBuffer(coding === 'identity' ? announcedBytes : 0, room.pool);
    let wireByteCount = 0;
    let inflater: Transform | undefined;

    request.on('data', onWireData);
    request.on('end', onWireEnd);
    request.on('close', onAbort);
    // A stream of HTTP/2 that was reset ends before it closes.
    request.on('aborted', onAbort);
    request.on('error', onAbort);
    stop?.addEventListener('abort', onStop);
    if (request.readableEnded) onWireEnd();
    else if (request.destroyed) onAbort();
    else if (stop?.aborted === true) onStop();

    function onWireData(chunk: Buffer): void {
      wireByteCount += chunk.length;
      if (isExact && wireByteCount > announcedBytes) fail(otherLength(announcedBytes, 'more came'));
      else if (coding === 'identity') keep(chunk);
      else if (wireByteCount > room.maxBodyBytes) fail(tooLarge(room));
      else inflate(coding, chunk);
    }

    function inflate(packed: 'gzip' | 'deflate', chunk: Buffer): void {
      inflater ??= openInflater(packed, chunk[0] ?? 0);
      if (inflater.write(chunk)) return;
      request.pause();
      inflater.once('drain', () => request.resume());
    }

    function onWireEnd(): void {
      // From here on the sender may go: nothing more is needed from it.
      request.off('close', onAbort).off('aborted', onAbort).off('error', onAbort);
      if (isExact && wireByteCount < announcedBytes) fail(otherLength(announcedBytes, `${wireByteCount} came`));
      else if (inflater === undefined) finish();
      else inflater.end();
    }

    function openInflater(packed: 'gzip' | 'deflate', firstByte: number): Transform {
      const opened = createInflater(packed, firstByte);
      opened.on('data', keep);
      opened.on('end', finish);
      opened.on('error', (cause) => fail(new RequestError('malformed', unreadable(packed, cause), { cause })));
      return opened;
    }

    function keep(chunk: Buffer): void {
      const byteCount = body.byteLength + chunk.length;
      if (byteCount > room.maxBodyBytes) fail(tooLarge(room));
      else if (room.reservation.growTo(byteCount)) body.append(chunk);
      else fail(new RequestError('busy', NO_ROOM));
    }

    function onAbort(): void {
      fail(new RequestError('aborted', 'The sender went away before its body had arrived.'));
    }

    function onStop(): void {
      fail(stop?.reason);
    }

    function finish(): void {
      release();
      resolve(body);
    }

    function fail(error: unknown): void {
      release();
      body.release();
      reject(error);
    }

    function release(): void {
      request.off('data', onWireData).off('end', onWireEnd);
      request.off('close', onAbort).off('aborted', onAbort).off('error', onAbort);
      request.on('error', () => {});
      stop?.removeEventListener('abort', onStop);
      inflater?.off('data', keep).off('end', finish).destroy();
      request.resume();
    }
  });
}

function createInflater(coding: 'gzip' | 'deflate', firstByte: number): Transform {
  const options = { chunkSize: INFLATED_CHUNK_BYTES };
  if (coding === 'gzip') return createGunzip(options);
  // RFC 1950: a zlib header's first byte ends in the method, 8; no encoder begins a raw deflate stream so.
  return (firstByte & 0x0f) === 8 ? createInflate(options) : createInflateRaw(options);
}

function tooLarge(room: BodyRoom): RequestError {
  return new RequestError(
    'too_large',
    `A body may have ${room.maxBodyBytes} bytes after inflating; send smaller batches.`,
  );
}

function otherLength(announcedBytes: number, what: string): RequestError {
  return new RequestError(
    'malformed',
    `The message has not the length that it announces: ${announcedBytes} bytes, ${what}.`,
  );
}

function unreadable(coding: string, cause: Error): string {
  return `The body is not whole and valid ${coding} (${cause.message}).`;
}
