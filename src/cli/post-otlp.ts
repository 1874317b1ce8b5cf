import type { Signal } from '../record/record-batch.js';
import { CliError } from './cli-error.js';
import { EXIT } from './exit-code.js';
import { UnreachableError } from './unreachable-error.js';

/** One OTLP body in protobuf. */
export interface OtlpBody {
  readonly signal: Signal;
  readonly bytes: Uint8Array;
}

const TIMEOUT_MS = 60_000;

/**
 * Posts a body to a bridge; one attempt.
 * @param baseUrl as in OTEL_EXPORTER_OTLP_ENDPOINT
 * @param stop ends the attempt; nothing answers then
 * @returns how long to wait before another attempt, in milliseconds; `null` when it was taken.
 * @throws UnreachableError when nothing answers, CliError when another attempt would not help.
 */
export async function postOtlp(
  baseUrl: string,
  { signal, bytes }: OtlpBody,
  stop?: AbortSignal,
): Promise<number | null> {
  const url = `${baseUrl.replace(/\/+$/, '')}/v1/${signal}`;
  const answer = await post(url, bytes, stop);
  if (answer.ok) return null;
  if (answer.status === 429 || answer.status >= 500) return 1_000 * Number(answer.headers.get('retry-after') ?? 1);
  throw new CliError(EXIT.failed, `${url} answered ${answer.status}; is a run-bridge listening there?`);
}

/** @throws CliError for what is no URL. */
export function checkBaseUrl(text: string): string {
  if (URL.canParse(text) && /^https?:$/.test(new URL(text).protocol)) return text;
  throw new CliError(EXIT.usage, `--to: ${JSON.stringify(text)} is not a URL such as http://127.0.0.1:4318`);
}

async function post(url: string, bytes: Uint8Array, stop?: AbortSignal): Promise<Response> {
  const headers = { 'content-type': 'application/x-protobuf' };
  try {
    const timeout = AbortSignal.timeout(TIMEOUT_MS);
    const signal = stop === undefined ? timeout : AbortSignal.any([timeout, stop]);
    const answer = await fetch(url, { method: 'POST', headers, body: Buffer.from(bytes), signal });
    await answer.arrayBuffer();
    return answer;
  } catch (cause) {
    throw new UnreachableError(`${url} cannot be reached; start a bridge there with run-bridge serve`, { cause });
  }
}
