import type { AboutDocument } from '../../api/about-router.js';
import { type Environment, nonEmpty } from '../../config/environment.js';
import { quoted } from '../../config/mask.js';
import { parseKeyValues } from '../../config/otlp-environment.js';
import { type Clock, isPassingStatus, parseRetryAfterMs } from '../../core/clock.js';
import { exchange, type HttpAnswer } from '../../core/http-client.js';
import { isLoopback } from '../../core/http-listener.js';
import { splitScope } from '../../otlp/scope-path.js';
import type { Signal } from '../../record/record-batch.js';
import { API_PATH } from '../../run/api-path.js';
import { CliError, EXIT } from '../command.js';

/** A bridge that answered. */
export interface FoundBridge {
  readonly version: string;
  /** Where OTLP goes, without `/v1/…`. */
  readonly otlpUrl: string;
  /** Where people and tools go; the bridge's own API is on both ports. */
  readonly webUrl: string;
  /** Where people reach its pages from here, as far as it is known; `null` for pages that only its own machine can reach. */
  readonly pagesUrl: string | null;
  /** Where it exports to: `https://host:port` each. */
  readonly exportsTo: readonly string[];
  /** Whether links sign in to its pages. */
  readonly hasSignInLinks: boolean;
}

/**
 * How long a bridge may take to say that it is one, in milliseconds. On the same machine it takes 1 or 2, unless the
 * processors are taken; where nothing listens that is known at once.
 */
const ANSWER_MS = 5_000;

/** More is not read of an answer: it is none of a bridge's. */
const MAX_ANSWER_BYTES = 64 * 1024;

/**
 * Asks whether a run-bridge answers at a URL, either of its ports, and where the other one is. The port that was asked is
 * given as it was asked for: a proxy or a container may show it under another number than the bridge knows.
 * @param baseUrl of the bridge; what its path says of a sender's records is left out
 * @returns `undefined` where nothing, or something else, answers.
 */
export async function askBridge(baseUrl: string, timeoutMs = ANSWER_MS): Promise<FoundBridge | undefined> {
  const url = splitScope(baseUrl).baseUrl.replace(/\/+$/, '');
  let document: unknown;
  try {
    const { body } = await exchange(
      { method: 'GET', url: new URL(`${url}${API_PATH}`), headers: {}, onStale() {} },
      { signal: AbortSignal.timeout(timeoutMs), maxBodyBytes: MAX_ANSWER_BYTES },
    );
    document = JSON.parse(Buffer.from(body).toString());
  } catch {
    return undefined;
  }
  const data = await readAbout(document);
  if (data === undefined) return undefined;
  const {
    version,
    port,
    otlp_url: otlpUrl,
    web_url: webUrl,
    public_url: publicUrl,
    exports_to: exportsTo,
    sign_in_links: hasSignInLinks,
  } = data;
  const urls = port === 'otlp' ? { otlpUrl: url, webUrl } : { otlpUrl, webUrl: url };
  const isOwnMachines = isLoopback(new URL(urls.webUrl).hostname) && !isLoopback(new URL(url).hostname);
  const pagesUrl = publicUrl?.replace(/\/+$/, '') ?? (isOwnMachines ? null : urls.webUrl);
  return { version, exportsTo, hasSignInLinks, ...urls, pagesUrl };
}

/** Reads a bridge's answer; `undefined` for anything else. Most commands find no bridge, and do without the library of schemas. */
async function readAbout(document: unknown): Promise<Required<AboutDocument> | undefined> {
  const { z } = await import('zod');
  const schema = z.object({
    name: z.literal('run-bridge'),
    version: z.string(),
    port: z.enum(['otlp', 'web']),
    otlp_url: z.url(),
    web_url: z.url(),
    // Bridges of earlier versions do not have it.
    public_url: z.url().nullable().default(null),
    exports_to: z.array(z.string()),
    // Bridges of earlier versions do not have it.
    sign_in_links: z.boolean().default(false),
  }) satisfies import('zod').ZodType<AboutDocument>;
  return schema.safeParse(document).data;
}

/** The variable that holds the token for a bridge elsewhere. */
const VARIABLE = 'RUN_BRIDGE_TOKEN';
const HEADERS_VARIABLE = 'OTEL_EXPORTER_OTLP_HEADERS';

/**
 * Headers of requests to a bridge: RUN_BRIDGE_TOKEN, else the `Authorization` of OpenTelemetry's variables for
 * their endpoint, if that is on the bridge's host: another backend's key is never sent to it.
 * @throws CliError for an invalid token.
 */
export function bridgeHeaders(environment: Environment, bridgeUrl: string): Readonly<Record<string, string>> {
  const token = nonEmpty(environment[VARIABLE])?.trim();
  if (token !== undefined) {
    if (/^[\x21-\x7e]+$/.test(token)) return { authorization: `Bearer ${token}` };
    throw new CliError(EXIT.usage, `${VARIABLE}: contains a space or a line break; set it to the token alone`);
  }
  const endpoint = nonEmpty(environment.OTEL_EXPORTER_OTLP_ENDPOINT)?.trim();
  if (endpoint !== undefined && hostOf(endpoint) !== hostOf(bridgeUrl)) return {};
  const { pairs } = parseKeyValues(HEADERS_VARIABLE, environment[HEADERS_VARIABLE] ?? '');
  const authorization = Object.entries(pairs).find(([name]) => name.toLowerCase() === 'authorization')?.[1];
  return authorization === undefined || !/^[\x20-\x7e]+$/.test(authorization) ? {} : { authorization };
}

function hostOf(url: string): string | undefined {
  return URL.canParse(url) ? new URL(url).hostname : undefined;
}

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

/** The JSON of an answer's body; `undefined` where it is none. */
export function parseAnswer(body: Uint8Array): unknown {
  try {
    return JSON.parse(Buffer.from(body).toString());
  } catch {
    return undefined;
  }
}
