import { Router } from 'express';
import { authorize, callerOf } from '../api/authenticator.js';
import type { Caller } from '../api/caller.js';
import { readableBytes } from '../core/text.js';
import { Layout, sendPage } from '../web/page/layout.js';
import { countText, Fact, Moment, RunMark } from '../web/page/parts.js';
import { orConflict } from './routes.js';
import type { RemovableRun, RunRemover } from './run-remover.js';

/** Dependencies of the pages. */
export interface RemovalPageDeps {
  readonly remover: Pick<RunRemover, 'look' | 'remove'>;
  /** The program's version. */
  readonly version: string;
}

/** Serves `/runs/{id}/delete`, which asks for confirmation and removes a run. */
export function removalPages({ remover, version }: RemovalPageDeps): Router {
  const router = Router();
  const path = '/runs/:runId/delete';
  router.get(path, authorize('runs:delete'), async (request, response) => {
    const caller = callerOf(response);
    const found = await remover.look(caller.accountId, String(request.params.runId));
    await sendPage(response, <DeletePage {...{ caller, found, version }} />, found.problem === null ? 200 : 409);
  });
  router.post(path, authorize('runs:delete'), async (request, response) => {
    // The page has listed the runs that are removed with it.
    await orConflict(remover.remove(callerOf(response).accountId, String(request.params.runId), true));
    response.redirect(303, '/');
  });
  return router;
}

/** The most other runs that are listed. */
const MAX_NAMED = 50;

function DeletePage(props: { readonly caller: Caller; readonly found: RemovableRun; readonly version: string }) {
  const { caller, found, version } = props;
  const { run, sharedRunIds, problem, size } = found;
  const title = `Delete run #${run.id}`;
  return (
    <Layout title={title} caller={caller} version={version}>
      <h1>{problem === null ? `${title}?` : `Run #${run.id} cannot be deleted`}</h1>
      <dl class="facts">
        <Fact isName name="Job">
          {run.job.name}
        </Fact>
        <Fact name="Status">
          <RunMark status={run.status} />
        </Fact>
        <Fact name="Started">
          <Moment unixMs={run.startedUnixMs ?? run.createdUnixMs} />
        </Fact>
        {size !== null && (
          <Fact name="On disk">
            {readableBytes(size.sizeBytes)} in {countText(size.fileCount, 'file')}
          </Fact>
        )}
      </dl>
      {problem !== null && <p class="notice bad">{problem}</p>}
      {problem === null && (
        <>
          <p>
            Its records, Parquet files, artifacts and measures go with it. Deliveries of webhooks that told of it stay
            in their log, and what was exported stays where it is. It cannot be undone.
          </p>
          {sharedRunIds.length > 0 && (
            <div class="notice bad">
              <p class="strong">
                {countText(sharedRunIds.length, 'other run')} {sharedRunIds.length === 1 ? 'shares' : 'share'} its trace
                and will be deleted, too:
              </p>
              <p>
                {sharedRunIds.slice(0, MAX_NAMED).map((id) => (
                  <>
                    <a href={`/runs/${id}`}>#{id}</a>{' '}
                  </>
                ))}
                {sharedRunIds.length > MAX_NAMED &&
                  `and ${(sharedRunIds.length - MAX_NAMED).toLocaleString('en')} more`}
              </p>
            </div>
          )}
        </>
      )}
      <form class="actions" method="post" action={`/runs/${run.id}/delete`}>
        {problem === null && <button type="submit">Delete</button>} <a href={`/runs/${run.id}`}>Back to the run</a>
      </form>
    </Layout>
  );
}
