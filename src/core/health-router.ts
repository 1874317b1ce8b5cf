import { type Response, Router } from 'express';
import type { Health, HealthReport } from './health.js';

/**
 * `GET /healthz`: 200 as long as the process answers. `GET /readyz`: 200 when every part can do its work, else 503 with
 * a line for each that cannot. With `?verbose` both answer JSON: every check, its reason and its details.
 */
export function healthRouter(health: Health): Router {
  const router = Router();
  router.get('/healthz', (request, response) => {
    if (wantsAll(request.query)) sendReport(response, 200, health.report());
    else sendText(response, 200, 'alive');
  });
  router.get('/readyz', (request, response) => {
    const report = health.report();
    const status = report.ready ? 200 : 503;
    if (wantsAll(request.query)) sendReport(response, status, report);
    else sendText(response, status, report.ready ? 'ready' : reasons(report));
  });
  return router;
}

function wantsAll(query: object): boolean {
  return 'verbose' in query;
}

function sendText(response: Response, status: number, text: string): void {
  response.status(status).set('Cache-Control', 'no-store').type('text/plain').send(`${text}\n`);
}

function sendReport(response: Response, status: number, report: HealthReport): void {
  const checks = report.checks.map(({ name, state }) => ({ name, ...state }));
  response.status(status).set('Cache-Control', 'no-store').json({ ready: report.ready, checks });
}

function reasons(report: HealthReport): string {
  return report.checks.flatMap(({ name, state }) => (state.ready ? [] : [`${name}: ${state.reason}`])).join('\n');
}
