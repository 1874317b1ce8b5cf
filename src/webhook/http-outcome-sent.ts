import { parseRetryAfterMs } from '../delivery/retry-after.js';
import type { Sent } from './event-sender.js';
import type { HttpOutcome } from './webhook-http.js';

const GONE = 410;

/** What an HTTP answer means for a delivery: 2xx is success, anything else is not. */
export function sentOf(
  { status, headers, body, error, resentAfter }: HttpOutcome,
  request: Pick<Sent, 'requestHeaders' | 'requestBody'>,
  nowUnixMs: number,
): Sent {
  const isDelivered = status !== null && status >= 200 && status < 300;
  return {
    isDelivered,
    isGone: status === GONE,
    retryAfterMs: isDelivered ? null : parseRetryAfterMs(headers['retry-after'], nowUnixMs),
    httpStatusCode: status,
    error: isDelivered ? null : (error ?? answerWords(status ?? 0)),
    ...request,
    responseHeaders: headers,
    responseBody: body,
    resentAfter,
  };
}

function answerWords(status: number): string {
  if (status === 101) return 'the endpoint answered 101: it wants to speak another protocol, which deliveries do not';
  if (status >= 300 && status < 400) return `the endpoint answered ${status}: redirects are not followed`;
  return status === GONE ? 'the endpoint answered 410: it wants nothing more' : `the endpoint answered ${status}`;
}
