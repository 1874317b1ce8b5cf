import type { IncomingHttpHeaders } from 'node:http';
import { type Readable, Transform } from 'node:stream';
import { createGunzip, createInflate, createInflateRaw } from 'node:zlib';
import type { BufferPool } from '../core/bytes.js';
import { reasonOf } from '../core/errors.js';
import { ZstdUnpacker } from '../core/zstd.js';
import type { OtlpEncoding } from './otlp-codec.js';
import { NO_ROOM, RequestError } from './refusal.js';

/** How a body is packed on its way. `deflate` is zlib's format or the raw one: senders differ. */
export type ContentCoding = 'identity' | PackedCoding;

type PackedCoding = 'gzip' | 'deflate' | 'zstd';

/** The media types of OTLP over HTTP (OTLP specification, "OTLP/HTTP"). */
export const MEDIA_TYPES: Readonly<Record<OtlpEncoding, string>> = {
  protobuf: 'application/x-protobuf',
  json: 'application/json',
};

/** The encoding of the Content-Type; parameters (`; charset=utf-8`) are ignored. */
export function findEncoding(headers: IncomingHttpHeaders): OtlpEncoding | undefined {
  const mediaType = headers['content-type']?.split(';', 1)[0]?.trim().toLowerCase();
  if (mediaType === MEDIA_TYPES.protobuf) return 'protobuf';
  return mediaType === MEDIA_TYPES.json ? 'json' : undefined;
}

/** @throws RequestError `unsupported_type` */
export function parseEncoding(headers: IncomingHttpHeaders): OtlpEncoding {
  const encoding = findEncoding(headers);
  if (encoding !== undefined) return encoding;
  const given = headers['content-type'];
  throw new RequestError(
    'unsupported_type',
    `${given === undefined ? 'A request without Content-Type' : `Content-Type ${quote(given)}`} is not supported; send ${MEDIA_TYPES.protobuf} or ${MEDIA_TYPES.json}.`,
  );
}

/** @param given as the sender names it; none counts as `identity`. @throws RequestError `unsupported_encoding` */
export function parseContentCoding(given = ''): ContentCoding {
  switch (given.trim().toLowerCase()) {
    case '':
    case 'identity':
      return 'identity';
    case 'gzip':
    case 'x-gzip':
      return 'gzip';
    case 'deflate':
      return 'deflate';
    case 'zstd':
      return 'zstd';
    default:
      throw new RequestError(
        'unsupported_encoding',
        `The encoding ${quote(given)} is not supported; send gzip, deflate, zstd or no compression.`,
      );
  }
}

/** The length that the header announces, in bytes; `undefined` for a chunked body. Node has checked its form already. */
export function parseContentLength(headers: IncomingHttpHeaders): number | undefined {
  const given = headers['content-length'];
  return given === undefined ? undefined : Number(given);
}

/** A sender's own words, cut so that an answer stays short. */
function quote(text: string): string {
  return JSON.stringify(text.length > 80 ? `${text.slice(0, 80)}…` : text);
}

/** How much a body may be. */
export interface BodyRoom {
  /** Limit of the body, in bytes: as it comes over the wire, and again after inflating. */
  readonly maxBodyBytes: number;
  /** Grows with the body; if it cannot, the body is refused. */
  readonly reservation: Reservation;
  /** Where the memory comes from. */
  readonly pool: BufferPool;
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
 * Reads a request's body complete and inflated, counting while it arrives, from HTTP/1 or a stream of HTTP/2. The rest of a refused body is discarded
 * as it arrives, so that the sender can read the response; the request timeout bounds that.
 *
 * `express.raw()` reads the same way, yet knows no raw deflate, takes brotli, does not count what comes in but inflates
 * to nothing, keeps pieces one by one, waits for the whole of a body that it has refused, and never settles when the sender of a compressed one goes away.
 *
 * @returns the body; call its `release` after reading.
 * @throws RequestError `too_large`, `busy` (the reservation cannot grow), `malformed` (not that coding or length, or cut off), `aborted`; the reason of `stop`.
 */
export function readBody(request: Readable, shape: BodyShape, room: BodyRoom): Promise<BodyBuffer> {
  const { coding, announcedBytes, isExact = false, stop } = shape;
  return new Promise((resolve, reject) => {
    const body = new BodyBuffer(coding === 'identity' ? announcedBytes : 0, room.pool);
    let wireByteCount = 0;
    let inflater: Transform | undefined;
    // From the body's end on the sender may go: nothing more is needed from it.
    let hasArrived = false;
    // Listeners stay where they are: to remove them takes longer than to ask, and what comes of a refused body has to be taken anyway.
    let isSettled = false;

    request.on('data', onWireData);
    request.on('end', onWireEnd);
    request.on('close', onAbort);
    // A stream of HTTP/2 that was reset ends before it closes.
    request.on('aborted', onAbort);
    request.on('error', onAbort);
    stop?.addEventListener('abort', onStop);
    // Until it is asked for the first time a stream keeps what comes, and stops the socket for it.
    request.read(0);
    if (request.readableEnded) onWireEnd();
    else if (request.destroyed) onAbort();
    else if (stop?.aborted === true) onStop();

    function onWireData(chunk: Buffer): void {
      if (isSettled) return;
      wireByteCount += chunk.length;
      if (isExact && wireByteCount > announcedBytes) fail(otherLength(announcedBytes, 'more came'));
      else if (coding === 'identity') keep(chunk);
      else if (wireByteCount > room.maxBodyBytes) fail(tooLarge(room));
      else inflate(coding, chunk);
    }

    function inflate(packed: PackedCoding, chunk: Buffer): void {
      inflater ??= openInflater(packed, chunk[0] ?? 0);
      const isRoomLeft = inflater.write(chunk);
      // Where that was the end of it, nothing drains it, and the rest of the body is discarded.
      if (isRoomLeft || inflater.destroyed) return;
      request.pause();
      inflater.once('drain', () => request.resume());
    }

    function onWireEnd(): void {
      hasArrived = true;
      if (isSettled) return;
      if (isExact && wireByteCount < announcedBytes) fail(otherLength(announcedBytes, `${wireByteCount} came`));
      else if (inflater === undefined) finish();
      else inflater.end();
    }

    function openInflater(packed: PackedCoding, firstByte: number): Transform {
      const opened = createInflater(packed, firstByte);
      opened.on('data', keep);
      opened.on('end', finish);
      opened.on('error', (cause) => fail(new RequestError('malformed', unreadable(packed, cause), { cause })));
      return opened;
    }

    function keep(chunk: Buffer): void {
      if (isSettled) return;
      const byteCount = body.byteLength + chunk.length;
      if (byteCount > room.maxBodyBytes) fail(tooLarge(room));
      else if (room.reservation.growTo(byteCount)) body.append(chunk);
      else fail(new RequestError('busy', NO_ROOM));
    }

    function onAbort(): void {
      if (!hasArrived)
        fail(new RequestError('aborted', 'The sender closed the connection before its whole body arrived.'));
    }

    function onStop(): void {
      fail(stop?.reason);
    }

    function finish(): void {
      if (settle()) resolve(body);
    }

    function fail(error: unknown): void {
      if (!settle()) return;
      body.release();
      request.resume();
      reject(error);
    }

    /** @returns whether nobody did before */
    function settle(): boolean {
      if (isSettled) return false;
      isSettled = true;
      stop?.removeEventListener('abort', onStop);
      inflater?.destroy();
      return true;
    }
  });
}

function createInflater(coding: PackedCoding, firstByte: number): Transform {
  const options = { chunkSize: INFLATED_CHUNK_BYTES };
  if (coding === 'zstd') return createZstd();
  if (coding === 'gzip') return createGunzip(options);
  // RFC 1950: a zlib header's first byte ends in the method, 8; no encoder begins a raw deflate stream so.
  return (firstByte & 0x0f) === 8 ? createInflate(options) : createInflateRaw(options);
}

/** The largest window of a body in zstd, in bytes: what HTTP allows (RFC 9659). */
const MAX_ZSTD_WINDOW_BYTES = 8 * 1024 * 1024;

function createZstd(): Transform {
  const zstd = new ZstdUnpacker(MAX_ZSTD_WINDOW_BYTES);
  const pass = (stream: Transform, blocks: Iterable<Uint8Array>, done: (error?: Error) => void) => {
    try {
      for (const block of blocks) {
        stream.push(block);
        // Whoever reads it has had enough: nothing more is unpacked.
        if (stream.destroyed) return;
      }
      done();
    } catch (error) {
      done(error instanceof Error ? error : new Error(reasonOf(error)));
    }
  };
  return new Transform({
    transform(chunk: Buffer, _encoding, done) {
      pass(this, zstd.push(chunk), done);
    },
    flush(done) {
      pass(this, zstd.end(), done);
    },
  });
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
    `The message does not have the length that its header announces: ${announcedBytes} bytes, ${what}.`,
  );
}

function unreadable(coding: string, cause: Error): string {
  return `The body is not whole and valid ${coding} (${cause.message}).`;
}

/** The smallest buffer that pieces are gathered in, in bytes. */
const MIN_CAPACITY_BYTES = 16 * 1024;

/** A body that was read whole. */
export interface WholeBody {
  readonly byteLength: number;
  /** All of it; valid until `release`. */
  bytes(): Uint8Array;
  /** Gives its memory back; the bytes are not to be read any more. */
  release(): void;
}

/**
 * Collects a body's pieces in one buffer that doubles when it is full. Stored one by one, pieces of one byte each would
 * take some 400 times their size: 3 MB sent that way took 1.3 GB.
 */
export class BodyBuffer implements WholeBody {
  private buffer: Buffer | undefined;
  private isFromPool = false;
  private used = 0;

  /** @param expectedBytes announced length; reserved when a second piece arrives. 0 if unknown. */
  constructor(
    private readonly expectedBytes: number,
    private readonly pool: BufferPool,
  ) {}

  get byteLength(): number {
    return this.used;
  }

  /** @param piece not modified later by the caller: a single piece is stored without a copy. */
  append(piece: Buffer): void {
    const length = this.used + piece.length;
    if (this.buffer === undefined) {
      this.buffer = piece;
    } else {
      if (length > this.buffer.length || this.buffer.length < MIN_CAPACITY_BYTES) this.grow(length);
      piece.copy(this.buffer, this.used);
    }
    this.used = length;
  }

  /** Everything appended so far; valid until the next piece, or `release`. */
  bytes(): Uint8Array {
    return this.buffer?.subarray(0, this.used) ?? new Uint8Array();
  }

  /** Gives its memory back; the bytes are not to be read any more. */
  release(): void {
    if (this.buffer !== undefined && this.isFromPool) this.pool.giveBack(this.buffer);
    this.buffer = undefined;
    this.isFromPool = false;
    this.used = 0;
  }

  private grow(neededBytes: number): void {
    const capacity = Math.max(neededBytes, this.expectedBytes, 2 * (this.buffer?.length ?? 0), MIN_CAPACITY_BYTES);
    const grown = this.pool.take(capacity);
    this.buffer?.copy(grown, 0, 0, this.used);
    if (this.buffer !== undefined && this.isFromPool) this.pool.giveBack(this.buffer);
    this.buffer = grown;
    this.isFromPool = true;
  }
}

/** Memory of bodies in flight, in bytes. A body that does not fit is refused immediately. */
export class ByteBudget {
  private used = 0;

  constructor(readonly maxBytes: number) {}

  get usedBytes(): number {
    return this.used;
  }

  /** Takes a part of the budget; `undefined` when that much is not left. */
  reserve(bytes: number): Reservation | undefined {
    const reservation = new Reservation((more) => this.take(more));
    return reservation.growTo(bytes) ? reservation : undefined;
  }

  private take(bytes: number): boolean {
    if (bytes > 0 && this.used + bytes > this.maxBytes) return false;
    this.used += bytes;
    return true;
  }
}

/** One body's part of the budget. */
export class Reservation {
  private reservedBytes = 0;

  /** @param take adds to the budget's use (or, negative, gives back); false when there is no room. */
  constructor(private readonly take: (bytes: number) => boolean) {}

  /** Makes sure that this many bytes are reserved; false, and no change, when the budget has no room for them. */
  growTo(bytes: number): boolean {
    if (bytes <= this.reservedBytes) return true;
    if (!this.take(bytes - this.reservedBytes)) return false;
    this.reservedBytes = bytes;
    return true;
  }

  /** Gives everything back; doing so twice does nothing. */
  release(): void {
    this.take(-this.reservedBytes);
    this.reservedBytes = 0;
  }
}
