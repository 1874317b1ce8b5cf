import { type Request, Router } from 'express';
import { authorize, callerOf } from '../../api/authenticate.js';
import type { Caller } from '../../api/caller.js';
import { FIRST_ACCOUNT_ID } from '../../storage/account-store.js';
import type { FirstRunProps } from './first-run.js';
import type { PageDeps } from './page-deps.js';
import { runListFilter, STATUS_CHOICES } from './run-list-filter.js';
import { RunListPage } from './run-list-page.js';
import { runRows } from './run-row.js';
import { sendPage } from './send-page.js';

/** Runs on a page. */
const PAGE_SIZE = 25;

/** `/`: the runs of an account, the last to start first. */
export function runListRouter(deps: PageDeps): Router {
  const { catalog, notes, clock, otlpUrl, isTokenNeeded, version } = deps;
  const router = Router();
  router.get('/', authorize('runs:read'), async (request, response) => {
    const caller = callerOf(response);
    const filter = runListFilter(request);
    const { items, totalCount } = await catalog.listRuns(caller.accountId, {
      ...(filter.status !== null && { statuses: STATUS_CHOICES[filter.status] }),
      ...(filter.text !== '' && { textContains: filter.text }),
      ...{ orderBy: 'created', isDescending: true, limit: PAGE_SIZE, offset: (filter.page - 1) * PAGE_SIZE },
    });
    const rows = await runRows(items, deps);
    const setAside = await notes.listSetAside(caller.accountId);
    const list = { rows, totalCount, pageSize: PAGE_SIZE, filter, setAside };
    const sending = sendingOf(request, caller);
    const now = { nowUnixMs: clock.nowUnixMs(), version };
    await sendPage(response, <RunListPage caller={caller} list={list} sending={sending} {...now} />);
  });
  return router;

  function sendingOf({ hostname }: Request, { accountId }: Caller): FirstRunProps {
    return {
      // What listens everywhere is reached by the name under which these pages are.
      otlpUrl: otlpUrl().replace(/\/\/(?:0\.0\.0\.0|\[::\]):/, `//${hostname}:`),
      isTokenNeeded: isTokenNeeded || accountId !== FIRST_ACCOUNT_ID,
    };
  }
}
