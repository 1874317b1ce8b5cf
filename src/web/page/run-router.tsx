import { type Response, Router } from 'express';
import { ApiError } from '../../api/api-error.js';
import { authorize, callerOf } from '../../api/authenticate.js';
import { QueryError } from '../../query/query-error.js';
import { QueryPlaces } from '../../query/query-places.js';
import type { PageDeps } from './page-deps.js';
import { runDownloads } from './run-downloads.js';
import { RunPage } from './run-page.js';
import { readRunSight } from './run-sight.js';
import { sendPage } from './send-page.js';

/** `/runs/{id}`: one run. */
export function runRouter(deps: PageDeps): Router {
  const { catalog, clock, version } = deps;
  const places = new QueryPlaces('requests for runs');
  const router = Router();
  router.get('/runs/:runId', authorize('runs:read'), async (request, response) => {
    const caller = callerOf(response);
    const run = await catalog.findRun(caller.accountId, runIdIn(request.params.runId));
    if (run === undefined) throw ApiError.notFound();
    const steps = await catalog.stepsOf(caller.accountId, [run.id]);
    // Whole record logs are read, so not for all at once.
    const leave = await placeIn(places, response);
    const sight = await readRunSight(run, steps, deps).finally(leave);
    const downloads = await runDownloads(caller, steps, deps);
    const seen = { run, steps, sight, downloads, isRedacted: deps.redaction !== 'off' };
    await sendPage(response, <RunPage caller={caller} seen={seen} nowUnixMs={clock.nowUnixMs()} version={version} />);
  });
  return router;
}

function runIdIn(text: unknown): number {
  if (typeof text !== 'string' || !/^[1-9]\d{0,14}$/.test(text)) throw ApiError.notFound();
  return Number(text);
}

async function placeIn(places: QueryPlaces, response: Response): Promise<() => void> {
  const gone = new AbortController();
  response.once('close', () => gone.abort());
  try {
    return await places.take(gone.signal);
  } catch (error) {
    if (!(error instanceof QueryError)) throw error;
    throw new ApiError(503, `Many are looking at runs just now: ${error.message}.`, { 'Retry-After': '2' });
  }
}
