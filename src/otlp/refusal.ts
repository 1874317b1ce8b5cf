import type { Clock } from '../core/clock.js';
import type { Shortage } from '../core/guard.js';
import type { Logger } from '../core/logger.js';
import { ConsumeError } from '../record/record-batch.js';
import { OtlpDecodeError } from './otlp-codec.js';

/** An answer that is not 200. */
export interface Refusal {
  /** HTTP status. */
  readonly status: number;
  /** gRPC's code, for the `google.rpc.Status` in the body. */
  readonly grpcCode: number;
  /** The category of the error; the log counts by it. */
  readonly reason: string;
  readonly message: string;
  readonly headers: Readonly<Record<string, string>>;
  /** When the same may be sent again, in milliseconds: whole seconds, at least one. `null`: not at all. */
  readonly retryAfterMs: number | null;
}

/** Codes of google/rpc/code.proto. */
const INVALID_ARGUMENT = 3;
const DEADLINE_EXCEEDED = 4;
const NOT_FOUND = 5;
const PERMISSION_DENIED = 7;
const RESOURCE_EXHAUSTED = 8;
const UNIMPLEMENTED = 12;
const INTERNAL = 13;
const UNAVAILABLE = 14;
const UNAUTHENTICATED = 16;

/** When to come back after `slow`, in milliseconds: the sender, or its way here, was at fault. */
const SLOW_RETRY_AFTER_MS = 1_000;

/** When to come back after `too_many_tries`, in milliseconds: an address has one more try by then. */
const TRY_AGAIN_AFTER_MS = 3_000;

/** The retry delay of `busy`, in milliseconds: bodies in flight are finished within about this time. */
const BUSY_RETRY_AFTER_MS = 1_000;

/**
 * The one place that maps errors to HTTP and gRPC statuses. Senders retry only 429 and 503 (OTLP
 * specification, "Retryable Response Codes"), and over gRPC after UNAVAILABLE and DEADLINE_EXCEEDED, but after
 * RESOURCE_EXHAUSTED only with a RetryInfo ("Failures" of OTLP/gRPC). So only temporary errors get those, and
 * a body that is too large RESOURCE_EXHAUSTED without one.
 */
export function refusalOf(error: unknown): Refusal {
  if (error instanceof RequestError) return fromRequestError(error);
  if (error instanceof ShortageError) {
    const { message, retryAfterMs } = error.shortage;
    return refuseForNow(503, UNAVAILABLE, 'shortage', message, retryAfterMs);
  }
  if (error instanceof OtlpDecodeError) return refuse(400, INVALID_ARGUMENT, 'malformed', error.message);
  if (error instanceof ConsumeError) return fromConsumeError(error);
  // Express's own: a path that is not percent-encoded correctly.
  if (error instanceof URIError)
    return refuse(
      400,
      INVALID_ARGUMENT,
      'malformed',
      'The path is not percent-encoded UTF-8; write ü as %C3%BC, a blank as %20, a percent sign as %25.',
    );
  return refuse(500, INTERNAL, 'internal', 'run-bridge failed on this request; see its log.');
}

function fromRequestError(error: RequestError): Refusal {
  switch (error.code) {
    case 'malformed':
    case 'aborted':
      return refuse(400, INVALID_ARGUMENT, error.code, error.message);
    case 'unauthenticated':
      return refuse(401, UNAUTHENTICATED, error.code, error.message, {
        'WWW-Authenticate': 'Bearer realm="run-bridge"',
      });
    case 'forbidden':
      return refuse(403, PERMISSION_DENIED, error.code, error.message);
    case 'too_many_tries':
      return refuseForNow(429, UNAVAILABLE, error.code, error.message, TRY_AGAIN_AFTER_MS);
    case 'unknown_path':
      return refuse(404, NOT_FOUND, error.code, error.message);
    case 'method':
      return refuse(405, UNIMPLEMENTED, error.code, error.message, { Allow: 'POST' });
    case 'too_large':
      return refuse(413, RESOURCE_EXHAUSTED, error.code, error.message);
    case 'unsupported_type':
      return refuse(415, UNIMPLEMENTED, error.code, error.message);
    case 'unsupported_encoding':
      return refuse(415, UNIMPLEMENTED, error.code, error.message, { 'Accept-Encoding': 'gzip, deflate, zstd' });
    case 'busy':
      return refuseForNow(503, UNAVAILABLE, error.code, error.message, BUSY_RETRY_AFTER_MS);
    case 'slow':
      return refuseForNow(408, DEADLINE_EXCEEDED, error.code, error.message, SLOW_RETRY_AFTER_MS);
    case 'unknown_method':
      return refuse(404, UNIMPLEMENTED, error.code, error.message);
    case 'protocol':
      return refuse(400, INVALID_ARGUMENT, error.code, error.message);
  }
}

function fromConsumeError(error: ConsumeError): Refusal {
  switch (error.code) {
    case 'overloaded':
      return refuseForNow(429, UNAVAILABLE, error.code, error.message, error.retryAfterMs);
    case 'unavailable':
      return refuseForNow(503, UNAVAILABLE, error.code, error.message, error.retryAfterMs);
    case 'refused':
      return refuse(400, INVALID_ARGUMENT, error.code, error.message);
  }
}

function refuse(
  status: number,
  grpcCode: number,
  reason: string,
  message: string,
  headers: Readonly<Record<string, string>> = {},
): Refusal {
  return { status, grpcCode, reason, message, headers, retryAfterMs: null };
}

/** The header counts whole seconds; rounded up, and never 0, which would be an invitation to hammer. */
function refuseForNow(status: number, grpcCode: number, reason: string, message: string, delayMs: number): Refusal {
  const seconds = Math.max(1, Math.ceil(delayMs / 1_000));
  const headers = { 'Retry-After': String(seconds) };
  return { status, grpcCode, reason, message, headers, retryAfterMs: seconds * 1_000 };
}

/** Faults of a request itself, as opposed to its records. */
export type RequestErrorCode =
  | 'malformed'
  | 'method'
  | 'unknown_path'
  | 'too_large'
  | 'unsupported_type'
  | 'unsupported_encoding'
  /** No memory for another body at the moment. */
  | 'busy'
  /** It did not arrive in time. */
  | 'slow'
  /** A method of gRPC that is not there. */
  | 'unknown_method'
  /** It has no token, or none that is good. */
  | 'unauthenticated'
  /** Its token may not do that. */
  | 'forbidden'
  /** Too many invalid tokens from its address. */
  | 'too_many_tries'
  /** Another protocol than the port's. */
  | 'protocol'
  /** The sender closed the connection; no answer is possible. */
  | 'aborted';

/** No memory for one more body. */
export const NO_ROOM = 'Too many bodies are being read; send this one again later. --max-memory sets how many are.';

/** No metrics are taken. */
export const NO_METRICS =
  'run-bridge takes traces and logs; it has no use for metrics: set OTEL_METRICS_EXPORTER=none at the sender.';

/** A refused request; the message is one sentence for the person who configured the sender. */
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

/** A body was not read because there is no room for it at the moment; the sender is asked to retry later. */
export class ShortageError extends Error {
  override readonly name = 'ShortageError';
  constructor(readonly shortage: Shortage) {
    super(shortage.message);
  }
}

/** A reason is logged once in this time, in milliseconds, with the number of times it was not. */
const QUIET_MS = 60_000;

/** No answer is possible, or the refusing part logs start and end of its refusals. */
const TOLD_ELSEWHERE: ReadonlySet<string> = new Set(['aborted', 'shortage', 'unavailable']);

/** Logs why requests or records are refused, without a line for each request of a misconfigured sender. */
export class RefusalLog {
  /** By reason; reasons are a closed set, so this map is bounded. */
  private readonly countsByReason = new Map<string, { loggedAtMs: number; unloggedCount: number }>();

  constructor(
    private readonly clock: Clock,
    private readonly logger: Logger,
  ) {}

  /** A request was not taken. @param cause logged where the refusal's message keeps it from the sender. */
  add(refusal: Refusal, cause: unknown): void {
    const unloggedCount = this.count(refusal.reason);
    if (unloggedCount === undefined) return;
    const { status, reason, message: detail } = refusal;
    const fields = { status, reason, detail, unloggedCount };
    if (refusal.status === 500) {
      const stack = cause instanceof Error ? cause.stack : String(cause);
      this.logger.error({ ...fields, stack }, 'request failed');
    } else if (TOLD_ELSEWHERE.has(refusal.reason)) this.logger.debug(fields, 'request refused');
    else this.logger.warn(fields, 'request refused');
  }

  /** A request was accepted without some records, which few senders show their user. */
  addPartial(rejectedCount: number, detail: string): void {
    const unloggedCount = this.count('partial');
    if (unloggedCount !== undefined) this.logger.warn({ rejectedCount, detail, unloggedCount }, 'records refused');
  }

  /** How often the reason went unlogged; `undefined` while it is still too early to log it again. */
  private count(reason: string): number | undefined {
    const nowMs = this.clock.monotonicMs();
    const counted = this.countsByReason.get(reason);
    if (counted !== undefined && nowMs - counted.loggedAtMs < QUIET_MS) {
      counted.unloggedCount += 1;
      return undefined;
    }
    this.countsByReason.set(reason, { loggedAtMs: nowMs, unloggedCount: 0 });
    return counted?.unloggedCount ?? 0;
  }
}
