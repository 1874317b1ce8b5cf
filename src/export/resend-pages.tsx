import express, { Router } from 'express';
import { authorize, callerOf } from '../api/authenticator.js';
import type { Caller } from '../api/caller.js';
import { Layout, sendPage } from '../web/page/layout.js';
import { orConflict } from './resend-routes.js';
import type { RunResender } from './run-resender.js';

const MAX_FORM_BYTES = 4_096;

/** `/runs/{id}/export`: sends a run to destinations again, which a button on its page asks for. */
export function resendPages(resender: Pick<RunResender, 'resend'>, version: string): Router {
  const router = Router();
  const form = express.urlencoded({ extended: false, limit: MAX_FORM_BYTES });
  router.post('/runs/:runId/export', authorize('jobs:run'), form, async (request, response) => {
    const caller = callerOf(response);
    const to: unknown = request.body?.destination;
    const destination = typeof to === 'string' && to !== '' ? to : null;
    const sent = await orConflict(resender.resend(caller.accountId, String(request.params.runId), destination));
    await sendPage(response, <SentPage {...{ ...sent, caller, version }} />);
  });
  return router;
}

function SentPage(props: {
  readonly runId: number;
  readonly destinations: readonly string[];
  readonly caller: Caller;
  readonly version: string;
}) {
  const { runId, destinations, caller, version } = props;
  const title = `Run #${runId} is sent again`;
  return (
    <Layout title={title} caller={caller} version={version}>
      <h1>{title}</h1>
      <p class="notice good" role="status">
        <span class="strong">{destinations.join(', ')}</span> {destinations.length === 1 ? 'gets' : 'get'} it from its
        first record on. How far that is, Settings and <code>/readyz?verbose</code> say.
      </p>
      <p>
        <a href={`/runs/${runId}`}>Back to the run</a>
      </p>
    </Layout>
  );
}
