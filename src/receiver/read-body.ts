import type { IncomingMessage } from 'node:http';
import type { Transform } from 'node:stream';
import { createGunzip, createInflate, createInflateRaw } from 'node:zlib';
import { BodyBuffer } from './body-buffer.js';
import type { BodyPool } from './body-pool.js';
import type { Reservation } from './byte-budget.js';
import { NO_ROOM, RequestError } from './request-error.js';
import { type ContentCoding, parseContentLength } from './request-format.js';

/** How much a body may be. */
export interface BodyRoom {
  /** Limit of the body, in bytes: as it comes over the wire, and again after inflating. */
  readonly maxBodyBytes: number;
  /** Grows with the body; when it cannot, the body is given up. */
  readonly reservation: Reservation;
  /** Where the memory comes from. */
  readonly pool: BodyPool;
}

/** Output is taken from zlib in pieces of this size, in bytes: a bomb is noticed at most one piece beyond the limit. */
const INFLATED_CHUNK_BYTES = 64 * 1024;

/**
 * Reads a request's body whole and inflated, counting while it comes. What is left of a body that was given up is thrown
 * away as it arrives, so that the sender can read the answer; the request time-out bounds that.
 *
 * `express.raw()` reads the same way, yet knows no raw deflate, takes brotli, does not count what comes in but inflates
 * to nothing, keeps pieces one by one, waits for the whole of a body that it has refused, and never settles when the sender of a compressed one goes away.
 *
 * @returns the body; whoever has read it calls its `release`.
 * @throws RequestError `too_large`, `busy` (the reservation cannot grow), `malformed` (not that coding, or cut off), `aborted`.
 */
export function readBody(request: IncomingMessage, coding: ContentCoding, room: BodyRoom): Promise<BodyBuffer> {
  return new Promise((resolve, reject) => {
    const body = new BodyBuffer(coding === 'identity' ? (parseContentLength(request.headers) ?? 0) : 0, room.pool);
    let wireByteCount = 0;
    let inflater: Transform | undefined;

    request.on('data', onWireData);
    request.on('end', onWireEnd);
    request.on('close', onAbort);
    request.on('error', onAbort);

    function onWireData(chunk: Buffer): void {
      wireByteCount += chunk.length;
      if (coding === 'identity') keep(chunk);
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
      request.off('close', onAbort).off('error', onAbort);
      if (inflater === undefined) finish();
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

    function finish(): void {
      release();
      resolve(body);
    }

    function fail(error: RequestError): void {
      release();
      body.release();
      reject(error);
    }

    function release(): void {
      request.off('data', onWireData).off('end', onWireEnd).off('close', onAbort).off('error', onAbort);
      request.on('error', () => {});
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

function unreadable(coding: string, cause: Error): string {
  return `The body is not whole and valid ${coding} (${cause.message}).`;
}
