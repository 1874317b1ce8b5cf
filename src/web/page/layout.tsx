import type { Response } from 'express';
import type { Child } from 'hono/jsx';
import type { JSX } from 'hono/jsx/jsx-runtime';
import type { Caller } from '../../api/caller.js';
import { may } from '../../api/permissions.js';
import { visibleText } from '../../core/text.js';

/** The frame of a page. */
export interface LayoutProps {
  readonly title: string;
  /** The visitor; `null` before signing in. */
  readonly caller: Caller | null;
  /** The program's version. */
  readonly version: string;
  /** Whether the page reloads itself if no script runs. */
  readonly isLive?: boolean;
  /** Files of `pages/` with scripts of this page, in addition to the one of all pages. */
  readonly scripts?: readonly string[];
  readonly children?: Child;
}

/** How often a live page reloads if no script runs, in seconds. */
const RELOAD_S = 10;

/** A whole page. */
export function Layout({ title, caller, version, isLive = false, scripts = [], children }: LayoutProps) {
  return (
    <html lang="en">
      <head>
        <meta charset="utf-8" />
        <meta name="viewport" content="width=device-width, initial-scale=1" />
        <meta name="color-scheme" content="light dark" />
        <title>{`${title} · run-bridge`}</title>
        <link rel="icon" type="image/svg+xml" href={`/pages/icon.svg?v=${version}`} />
        <link rel="stylesheet" href={`/pages/style.css?v=${version}`} />
        {['page.js', ...scripts].map((file) => (
          <script type="module" src={`/pages/${file}?v=${version}`} />
        ))}
        {isLive && (
          <noscript>
            <meta http-equiv="refresh" content={String(RELOAD_S)} />
          </noscript>
        )}
      </head>
      <body>
        <a class="skip" href="#main">
          Skip to the content
        </a>
        <header>
          <a class="brand" href="/">
            run-bridge
          </a>
          {caller !== null && <Navigation caller={caller} />}
        </header>
        <main id="main">{children}</main>
        <footer>
          run-bridge {version} · <span data-time-zone>times are in UTC</span> ·{' '}
          <a href="/api/openapi.json">API (OpenAPI)</a>
        </footer>
      </body>
    </html>
  );
}

function Navigation({ caller }: { readonly caller: Caller }) {
  return (
    <>
      <nav aria-label="Pages of run-bridge">
        {may(caller, 'runs:read') && <a href="/">Runs</a>}
        {may(caller, 'jobs:read') && <a href="/jobs">Jobs</a>}
        {may(caller, 'runs:read') && <a href="/models">Models</a>}
        {may(caller, 'webhooks:read') && <a href="/webhooks">Webhooks</a>}
        {may(caller, 'query') && <a href="/query">Query</a>}
        {may(caller, 'tokens:manage') && <a href="/settings">Settings</a>}
      </nav>
      <form class="who" method="post" action="/sign-out">
        <span>{whoText(caller)}</span>
        <button type="submit" class="quiet">
          Sign out
        </button>
      </form>
    </>
  );
}

/** Says which account and rights a visitor has; nothing where there is no other account or user, and they have every right. */
function whoText({ accountId, permission, isAlone = false }: Caller): string {
  const rights = permission.replaceAll('_', ' ');
  if (!isAlone) return `account ${accountId}, ${rights}`;
  return permission === 'account_admin' ? '' : rights;
}

/** Allows only scripts, styles and pictures of this program, no embedding in frames, and no forms that lead elsewhere. */
const POLICY = [
  "default-src 'none'",
  "style-src 'self'",
  "script-src 'self'",
  "img-src 'self'",
  "connect-src 'self'",
  "form-action 'self'",
  "base-uri 'none'",
  "frame-ancestors 'none'",
].join('; ');

/** Sends a page. Active characters in its texts are made visible. @param status of HTTP, default 200 */
export async function sendPage(response: Response, page: JSX.Element, status = 200): Promise<void> {
  const html = visibleText(String(await page));
  response
    .status(status)
    .set({
      'Content-Security-Policy': POLICY,
      'X-Content-Type-Options': 'nosniff',
      'Referrer-Policy': 'same-origin',
      'Cross-Origin-Opener-Policy': 'same-origin',
      'Cache-Control': 'no-store',
      Vary: 'Accept, Cookie',
    })
    .type('html')
    .send(`<!doctype html>\n${html}`);
}
