import { Router } from 'express';
import { ApiError } from '../../api/api-error.js';
import { authorize, callerOf } from '../../api/authenticate.js';
import { Permits, withPermit } from '../../api/permits.js';
import { parseRunNumber } from '../../storage/run-number.js';
import type { PageDeps } from './page-deps.js';
import { runDownloads } from './run-downloads.js';
import { RunPage } from './run-page.js';
import { readRunPageModel } from './run-page-model.js';
import { sendPage } from './send-page.js';

/** `/runs/{id}`: one run. */
export function runRouter(deps: PageDeps): Router {
  const { catalog, clock, version } = deps;
  const permits = new Permits('requests for runs');
  const router = Router();
  router.get('/runs/:runId', authorize('runs:read'), async (request, response) => {
    const caller = callerOf(response);
    const runId = parseRunNumber(request.params.runId);
    const run = runId === undefined ? undefined : await catalog.findRun(caller.accountId, runId);
    if (run === undefined) throw ApiError.notFound();
    const steps = await catalog.stepsOf(caller.accountId, [run.id]);
    // Whole record logs are read, so not for all at once.
    const sight = await withPermit(permits, response, () => readRunPageModel(run, steps, caller, deps), tooMany);
    const downloads = await runDownloads(caller, steps, deps);
    const seen = { run, steps, sight, downloads };
    await sendPage(response, <RunPage caller={caller} seen={seen} nowUnixMs={clock.nowUnixMs()} version={version} />);
  });
  return router;
}

function tooMany(reason: string): string {
  return `Too many clients are reading runs at the moment: ${reason}.`;
}
