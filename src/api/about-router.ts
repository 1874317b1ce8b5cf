import { Router } from 'express';
import { arePagesLocal, type ListenAddress } from '../core/http-listener.js';
import { API_PATH } from '../run/api-path.js';

/** The description of a bridge at `GET /api/run-bridge/v1`. */
export interface AboutDocument {
  readonly name: 'run-bridge';
  readonly version: string;
  /** Which of its two ports answers. */
  readonly port: BridgePort;
  /** The addresses for OTLP, and for people and tools, as the client can reach them. */
  readonly otlp_url: string;
  readonly web_url: string;
  /** The setting `public-url`: where people reach the pages; `null` where that is not set. */
  readonly public_url: string | null;
  /** Where it exports to, as `https://host:port`: without paths, which may contain secrets. */
  readonly exports_to: readonly string[];
  /** Whether links of `run-bridge open` sign in to its pages. */
  readonly sign_in_links: boolean;
}

/** `otlp` takes telemetry, `web` is for people and tools; both answer the native API. */
export type BridgePort = 'otlp' | 'web';

/** The properties of a bridge; addresses are known once it listens. */
export interface About {
  readonly version: string;
  readonly otlpAddress: () => ListenAddress;
  readonly webAddress: () => ListenAddress;
  /** The public address of the pages; `null` if not configured. */
  readonly publicUrl: string | null;
  /** Origins of the destinations. */
  readonly exportsTo: readonly string[];
}

/** Serves what programs find out by whether a run-bridge answers somewhere, and where its other port is. */
export function aboutRouter(
  { version, otlpAddress, webAddress, publicUrl, exportsTo }: About,
  port: BridgePort,
): Router {
  const router = Router();
  router.get(API_PATH, (request, response) => {
    const { host } = request.headers;
    const urls = { otlp_url: urlFor(otlpAddress(), host), web_url: urlFor(webAddress(), host) };
    const document: AboutDocument = {
      ...{ name: 'run-bridge', version, port, ...urls, public_url: publicUrl, exports_to: exportsTo },
      sign_in_links: arePagesLocal(webAddress().host, publicUrl),
    };
    response.set('Cache-Control', 'no-store').json(document);
  });
  return router;
}

/** A wildcard address is replaced by the name that the client used. */
function urlFor({ url, host, port }: ListenAddress, askedHost: string | undefined): string {
  if ((host !== '0.0.0.0' && host !== '::') || askedHost === undefined) return url;
  const asked = `http://${askedHost}`;
  return URL.canParse(asked) ? `http://${new URL(asked).hostname}:${port}` : url;
}
