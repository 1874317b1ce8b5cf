import { Duplex } from 'node:stream';
import type { ServerInterceptingCallInterface } from '@grpc/grpc-js';

/** A call whose message nobody has read yet. */
export interface IncomingCall {
  /** The call's stream of HTTP/2, paused. */
  readonly stream: Duplex;
  /** How a message that says so is compressed: the header `grpc-encoding`. */
  readonly encoding: string;
}

/**
 * Takes the reading of a call's message over from grpc-js, which would gather it whole and inflate it before anybody is
 * asked: 20 calls with 60 kB each, compressed a thousandfold, take 1 GB. grpc-js has no public way to read otherwise, so
 * these are two of its private fields.
 *
 * @returns `undefined` where a version of grpc-js keeps them elsewhere.
 */
export function takeOver(call: ServerInterceptingCallInterface): IncomingCall | undefined {
  const stream: unknown = Reflect.get(call, 'stream');
  const encoding: unknown = Reflect.get(call, 'incomingEncoding');
  if (!(stream instanceof Duplex) || typeof encoding !== 'string') return undefined;
  stream.removeAllListeners('data');
  return { stream, encoding };
}
