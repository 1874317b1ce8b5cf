import { Router } from 'express';
import { ApiError } from '../api/api-error.js';
import { authorize, callerOf } from '../api/authenticate.js';
import { METRICS_PATH } from '../api/metrics-path.js';
import { FIRST_ACCOUNT_ID } from '../store/account-store.js';
import { writeExposition } from './exposition.js';
import type { Scrape } from './scrape.js';

/** What scrapers may accept; the first one also who accepts anything, or none of them. */
const OFFERED = [
  'text/plain; version=0.0.4',
  'application/openmetrics-text; version=1.0.0',
  // Prometheus 3 says so; names here need no escaping, so these are the same.
  'application/openmetrics-text; version=1.0.0; escaping=allow-utf-8',
  'application/openmetrics-text; version=1.0.0; escaping=underscores',
];

/**
 * `GET /metrics`, in Prometheus' text format, or OpenMetrics where the scraper would rather have that. It is of the whole
 * program, so other accounts' tokens are refused.
 */
export function metricRouter(scrape: Pick<Scrape, 'read'>): Router {
  const router = Router();
  router.get(METRICS_PATH, authorize('metrics:read'), async (request, response) => {
    if (callerOf(response).accountId !== FIRST_ACCOUNT_ID) {
      throw new ApiError(403, 'Metrics are of the whole program: they need a token of its first account.');
    }
    const accepted = request.accepts(OFFERED) || '';
    const format = accepted.startsWith('application/openmetrics-text') ? 'openmetrics' : 'prometheus';
    const { contentType, text } = await writeExposition(await scrape.read(), format);
    response.set({ 'Content-Type': contentType, 'Cache-Control': 'no-store', Vary: 'Accept' }).send(text);
  });
  return router;
}
