import { quoted } from '../../config/mask.js';
import { type Clock, isPassingStatus, parseRetryAfterMs } from '../../core/clock.js';
import { exchange, type HttpAnswer } from '../../core/http-client.js';
import { splitScope } from '../../otlp/scope-path.js';
import type { Signal } from '../../record/record-batch.js';
import { CliError } from '../cli-error.js';
import { EXIT } from '../exit-code.js';

/** Nothing answers at a bridge's address: it may not be there yet, or be starting again. */
export class UnreachableError extends CliError {
  constructor(message: string, options?: ErrorOptions) {
    super(EXIT.failed, message, options);
  }
}

/** One OTLP body in protobuf. */
export interface OtlpBody {
  readonly signal: Signal;
  readonly bytes: Uint8Array;
}

const TIMEOUT_MS = 60_000;
/** No more is read of an answer, of which the status says all. */
const MAX_ANSWER_BYTES = 64 * 1024;
/** How long to wait for a bridge without a `Retry-After`, in milliseconds. */
const RETRY_AFTER_MS = 1_000;
/** Limits of the `Retry-After` of a bridge, or a proxy before it, in milliseconds: clocks differ, and 0 is no pause. */
const MIN_RETRY_AFTER_MS = 100;
const MAX_RETRY_AFTER_MS = 60_000;

/**
 * Posts a body to a bridge, in one attempt.
 * @param baseUrl like OTEL_EXPORTER_OTLP_ENDPOINT
 * @param clock for a `Retry-After` that is a date
 * @param stop aborts the attempt; it counts as unreachable then
 * @param headers sent in addition to those of OTLP
 * @returns how long to wait before another attempt, in milliseconds, 100 to 60,000; `null` when it was accepted.
 * @throws UnreachableError if nothing answers, CliError if another attempt would not help.
 */
export async function postOtlp(
  baseUrl: string,
  { signal, bytes }: OtlpBody,
  clock: Clock,
  stop?: AbortSignal,
  headers: Readonly<Record<string, string>> = {},
): Promise<number | null> {
  const url = `${baseUrl.replace(/\/+$/, '')}/v1/${signal}`;
  const answer = await post(url, bytes, headers, stop);
  if (answer.status >= 200 && answer.status < 300) return null;
  if (isPassingStatus(answer.status)) return retryAfterMs(answer, clock);
  throw new CliError(EXIT.failed, `${url} answered ${answer.status}; ${HINTS[answer.status] ?? ANY_HINT}`);
}

const ANY_HINT = 'is a run-bridge listening there?';
const HINTS: Readonly<Record<number, string>> = {
  401: 'set RUN_BRIDGE_TOKEN to a token that is good there (run-bridge token create)',
  403: 'the token in RUN_BRIDGE_TOKEN may not send telemetry: its permission must be account_admin, admin or developer',
};

/** @throws CliError for an invalid URL. */
export function checkBaseUrl(text: string): string {
  if (URL.canParse(text) && /^https?:$/.test(new URL(text).protocol)) return text;
  throw new CliError(EXIT.usage, `--to: ${quoted(text)} is not a URL such as http://127.0.0.1:4318`);
}

/** The address of a bridge itself, of one whose path may name what records belong to. @throws CliError for an invalid URL. */
export function bridgeUrl(text: string): string {
  return splitScope(checkBaseUrl(text)).baseUrl;
}

function retryAfterMs({ headers }: HttpAnswer, clock: Clock): number {
  const saidMs = parseRetryAfterMs(headers['retry-after'], clock.nowUnixMs()) ?? RETRY_AFTER_MS;
  return Math.min(MAX_RETRY_AFTER_MS, Math.max(MIN_RETRY_AFTER_MS, saidMs));
}

async function post(
  url: string,
  bytes: Uint8Array,
  more: Readonly<Record<string, string>>,
  stop?: AbortSignal,
): Promise<HttpAnswer> {
  const headers = { ...more, 'content-type': 'application/x-protobuf' };
  try {
    const timeout = AbortSignal.timeout(TIMEOUT_MS);
    const signal = stop === undefined ? timeout : AbortSignal.any([timeout, stop]);
    const answer = await exchange(
      { method: 'POST', url: new URL(url), headers, body: bytes, onStale() {} },
      { signal, maxBodyBytes: MAX_ANSWER_BYTES },
    );
    if (answer.bodyEnd instanceof Error) throw answer.bodyEnd;
    return answer;
  } catch (cause) {
    throw new UnreachableError(`${url} cannot be reached; start a bridge there with run-bridge serve`, { cause });
  }
}

/** An address that listens everywhere is reached from this machine by its loopback address. */
export function reachableUrl(url: string): string {
  return url.replace('//0.0.0.0:', '//127.0.0.1:').replace('//[::]:', '//[::1]:');
}
