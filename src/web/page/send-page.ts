import type { Response } from 'express';
import type { JSX } from 'hono/jsx/jsx-runtime';

/** No script, style or picture but the program's own, no frame round it, and no form that leads elsewhere. */
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

/** Answers with a page. @param status of HTTP, default 200 */
export async function sendPage(response: Response, page: JSX.Element, status = 200): Promise<void> {
  const html = String(await page);
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
