import { z } from 'zod';
import type { AboutDocument } from '../../api/about-router.js';
import { exchange } from '../../core/http-client.js';
import { isLoopback } from '../../core/http-listener.js';
import { splitScope } from '../../otlp/scope-path.js';
import { API_PATH } from '../../run/api-path.js';

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

const aboutSchema = z.object({
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
}) satisfies z.ZodType<AboutDocument>;

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
  const { data } = aboutSchema.safeParse(document);
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
