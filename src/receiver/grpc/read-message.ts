import type { Duplex } from 'node:stream';
import { type BodyBuffer, type BodyRoom, readBody } from '../read-body.js';
import { RequestError } from '../refusal.js';
import type { ContentCoding } from '../request-format.js';

/** What stands before a message: whether it is compressed, and its length in 4 bytes (gRPC over HTTP/2, "Length-Prefixed-Message"). */
const PREFIX_BYTES = 5;

/**
 * Reads the one message of a unary call whole and inflated, counting while it comes.
 * @param stream paused; what is left of a message that was given up is thrown away.
 * @param coding of a message that says it is compressed.
 * @param makeRoom is asked once the message's length is known; what it throws ends the reading.
 * @param stop ends the reading with its reason.
 * @returns the message; whoever has read it calls its `release`.
 * @throws RequestError `too_large`, `busy`, `malformed`, `aborted`; what `makeRoom` throws; the reason of `stop`.
 */
export async function readMessage(
  stream: Duplex,
  coding: ContentCoding,
  makeRoom: (announcedBytes: number) => BodyRoom,
  stop: AbortSignal,
): Promise<BodyBuffer> {
  const prefix = await readPrefix(stream, stop);
  const isCompressed = prefix.readUInt8(0) === 1;
  const announcedBytes = prefix.readUInt32BE(1);
  if (prefix.readUInt8(0) > 1) throw new RequestError('malformed', 'What came is not a message of gRPC.');
  if (isCompressed && coding === 'identity') {
    throw new RequestError('malformed', 'The message says that it is compressed, but no grpc-encoding says how.');
  }
  const shape = { coding: isCompressed ? coding : 'identity', announcedBytes, isExact: true, stop } as const;
  const body = readBody(stream, shape, makeRoom(announcedBytes));
  stream.resume();
  return body;
}

function readPrefix(stream: Duplex, stop: AbortSignal): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    let head: Buffer = Buffer.alloc(0);
    stream.on('data', onData);
    stream.on('end', onEnd);
    stream.on('aborted', onAborted);
    stream.on('close', onAborted);
    stop.addEventListener('abort', onStop);
    if (stream.destroyed) onAborted();
    // A stream without any bytes ends although it is paused, and does not say so twice.
    else if (stream.readableEnded) onEnd();
    else if (stop.aborted) onStop();
    else stream.resume();

    function onData(chunk: Buffer): void {
      head = head.length === 0 ? chunk : Buffer.concat([head, chunk]);
      if (head.length < PREFIX_BYTES) return;
      release();
      stream.pause();
      if (head.length > PREFIX_BYTES) stream.unshift(head.subarray(PREFIX_BYTES));
      resolve(head.subarray(0, PREFIX_BYTES));
    }

    function onEnd(): void {
      fail(new RequestError('malformed', 'A call has one message; this one ended before it.'));
    }

    function onAborted(): void {
      fail(new RequestError('aborted', 'The sender went away before its message had arrived.'));
    }

    function onStop(): void {
      fail(stop.reason);
    }

    function fail(error: unknown): void {
      release();
      reject(error);
    }

    function release(): void {
      stream.off('data', onData).off('end', onEnd).off('aborted', onAborted).off('close', onAborted);
      stop.removeEventListener('abort', onStop);
    }
  });
}
