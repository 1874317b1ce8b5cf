import type { SendResult } from './transport.js';

/**
 * What an answer says of the request that it answers.
 * - `taken`: all of it, or all but what a partial success rejects, which is the receiver's last word on it.
 * - `later`: the receiver takes nothing now, or nobody heard it; the same request is sent until it is answered otherwise.
 * - `closed`: the receiver, or the configuration, is not ready for anything (no right, no such place, elsewhere). That says
 *   nothing of the data, which waits as with `later`.
 * - `tooLarge`: less of it may be taken. One record alone is refused for good.
 * - `refused`: there is something in it that is never taken. Halves of it are tried until the record is alone, which is given up.
 * - `failed`: nobody knows whether the data or the receiver is at fault. It is tried a few times, then by halves; a record
 *   alone is given up once the receiver has taken others meanwhile.
 */
export type AnswerMeaning = 'taken' | 'later' | 'closed' | 'tooLarge' | 'refused' | 'failed';

/** Attempts of a request that fails, before halves of it are tried. */
export const ATTEMPTS_BEFORE_HALVING = 4;
/** Attempts of a record that fails alone, those of the request it came in included, before it is given up. */
export const ATTEMPTS_OF_ONE = 7;
/** Records that are refused alone, in a row without anything that is taken: what follows is refused as it comes, for it is not about single records. */
export const MAX_REFUSED_ALONE = 16;
/** Requests that are halved for failing, in a row without anything that is taken: it is not about the records. */
export const MAX_FRUITLESS_HALVINGS = 16;

/** OTLP names 429, 502, 503 and 504 (https://opentelemetry.io/docs/specs/otlp/#failures-1); 408 says the same of itself. */
const LATER: ReadonlySet<number> = new Set([408, 425, 429, 502, 503, 504]);
/** Credentials, their rights, addresses, methods and encodings: what has to be put right somewhere else than in the data. */
const CLOSED: ReadonlySet<number> = new Set([401, 402, 403, 404, 405, 406, 407, 415, 421, 426, 511]);
/** What OTLP has a receiver answer to data that it cannot read, and what others answer to it. */
const REFUSED: ReadonlySet<number> = new Set([0, 400, 422]);
const TOO_LARGE = 413;

/** How receivers say that a request is too large, where the status does not: the Collector's HTTP server answers 400, what forwards to gRPC passes on its words. */
const SIZE_WORDS =
  /too large|larger than|too big|exceed\w* .{0,40}(size|limit|length|bytes)|(size|length|bytes) .{0,40}exceed|max\w* (\w+ ){0,3}(size|length)\b.{0,40}(reached|exceeded)/i;
/** Said by gRPC alone, with whatever status. */
const GRPC_SIZE_WORDS = /received message (after decompression )?larger than max|message larger than max/i;

/** What the answer to a request means. */
export function meaningOf(result: SendResult): AnswerMeaning {
  if (result.kind === 'accepted') return 'taken';
  const { status, message } = result;
  if (status === null) return 'later';
  if (status === TOO_LARGE || GRPC_SIZE_WORDS.test(message)) return 'tooLarge';
  if (LATER.has(status) || (status > 0 && status < 200)) return 'later';
  if (CLOSED.has(status) || (status >= 300 && status < 400)) return 'closed';
  if ((status === 400 || status >= 500) && SIZE_WORDS.test(message)) return 'tooLarge';
  return REFUSED.has(status) ? 'refused' : 'failed';
}

/** What is known of a request when it is answered. */
export interface AnsweredRequest {
  /** Records that the answer speaks of. */
  readonly itemCount: number;
  /** Attempts that failed, this one included. */
  readonly failedAttempts: number;
  /** Whether the receiver has taken something else since this request failed first. */
  readonly isReceiverWell: boolean;
}

/** What is to be done with a request that was answered, beside what the circuit breaker makes of it. */
export type NextStep = 'settle' | 'halve' | 'giveUp';

/** @param fruitless what was done in a row without anything that was taken */
export function nextStep(
  result: SendResult,
  { itemCount, failedAttempts, isReceiverWell }: AnsweredRequest,
  fruitless: { readonly refusedAlone: number; readonly halvings: number },
): NextStep {
  const isAlone = itemCount === 1;
  switch (meaningOf(result)) {
    case 'taken':
    case 'later':
    case 'closed':
      return 'settle';
    case 'tooLarge':
      return isAlone ? 'giveUp' : 'halve';
    case 'refused':
      // Status 0 is our own: a record that cannot be sent at all, or a signal that is not asked for.
      return isAlone || result.status === 0 || fruitless.refusedAlone >= MAX_REFUSED_ALONE ? 'giveUp' : 'halve';
    case 'failed':
      if (isAlone) return isReceiverWell && failedAttempts >= ATTEMPTS_OF_ONE ? 'giveUp' : 'settle';
      return failedAttempts >= ATTEMPTS_BEFORE_HALVING && fruitless.halvings < MAX_FRUITLESS_HALVINGS
        ? 'halve'
        : 'settle';
  }
}
