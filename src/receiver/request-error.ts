/** What a request can do wrong, apart from what its records say. */
export type RequestErrorCode =
  | 'malformed'
  | 'method'
  | 'unknown_path'
  | 'too_large'
  | 'unsupported_type'
  | 'unsupported_encoding'
  /** No memory for one more body just now. */
  | 'busy'
  /** It did not arrive in time. */
  | 'slow'
  /** A method of gRPC that is not there. */
  | 'unknown_method'
  /** It has no token, or none that is good. */
  | 'unauthenticated'
  /** Its token may not do that. */
  | 'forbidden'
  /** Too many tokens that are not good came from its address. */
  | 'too_many_tries'
  /** Another protocol than the port's. */
  | 'protocol'
  /** The sender went away; nobody is there to be answered. */
  | 'aborted';

/** No memory for one more body. */
export const NO_ROOM = 'Too many bodies are being read; send this one again later. --max-memory sets how many are.';

/** No metrics are taken. */
export const NO_METRICS =
  'run-bridge takes traces and logs; it has no use for metrics: set OTEL_METRICS_EXPORTER=none at the sender.';

/** A request that is not taken; the message is one sentence for whoever configured the sender. */
export class RequestError extends Error {
  override readonly name = 'RequestError';
  constructor(
    readonly code: RequestErrorCode,
    message: string,
    options?: ErrorOptions,
  ) {
    super(message, options);
  }
}
