import type { Caller } from '../../api/caller.js';
import {
  type LiveRun,
  liveLine,
  phaseText,
  positionText,
  roughly,
  uploadText,
  withUsual,
} from '../../api/live-runs.js';
import { may } from '../../api/permissions.js';
import { cut } from '../../core/text.js';
import { countedWords } from '../../run/words.js';
import type { CatalogRun } from '../../storage/run-catalog.js';
import { isFinal } from '../../storage/state-tables.js';
import type { CancelState, PageDeps } from './page-deps.js';
import { countText, PostButton } from './parts.js';
import { MAX_NAME } from './run-page-model.js';
import { CountsBar } from './run-shell.js';
import { NodeLink } from './run-troubles.js';

/** A run under way as pages show it. */
export interface ShownLive {
  readonly live: LiveRun;
  /** `null` where the visitor may not cancel it. */
  readonly cancel: CancelState | null;
}

/**
 * Reads how far those of the runs have come that are under way, by their ids.
 * @throws StoreError; errors of the reader
 */
export async function shownLive(
  runs: readonly CatalogRun[],
  caller: Caller,
  { live, jobs, clock }: Pick<PageDeps, 'live' | 'clock'> & { readonly jobs: Pick<PageDeps['jobs'], 'cancelStateOf'> },
): Promise<ReadonlyMap<number, ShownLive>> {
  const found = new Map<number, ShownLive>();
  for (const [id, one] of await live.of(runs, clock.nowUnixMs())) {
    found.set(id, { live: one, cancel: may(caller, 'runs:cancel') ? await jobs.cancelStateOf(id) : null });
  }
  return found;
}

/** The most running and failed nodes that are named on a run's page, and in a row of a list. */
const MAX_RUNNING = 8;
const MAX_FAILED = 3;

/** Shows how far a run has come: what is done, what runs beside how long it usually takes, what failed, and about how long it goes on. */
export function LiveBox({ run, shown }: { readonly run: CatalogRun; readonly shown: ShownLive }) {
  const { live, cancel } = shown;
  const { doneCount, failedCount, running, waitingCount, lastEnded, hasStarts, leftMs, usualMs, uploadingCount } = live;
  return (
    <section class="outcome live" aria-label="How far it has come">
      <LiveBar live={live} />
      <div class="live-head">
        <p class="capital">
          <span class="strong">{positionText(live)}</span>
          {failedCount > 0 && (
            <>
              {' · '}
              <span class="bad">{failedCount.toLocaleString('en')} failed</span>
            </>
          )}
          {uploadingCount !== null && ` · ${uploadText(uploadingCount)}`}
          {leftMs !== null && leftMs > 0 && ` · about ${roughly(leftMs)} left`}
          {usualMs !== null && <span class="soft"> · usually {roughly(usualMs)} in all</span>}
        </p>
        <Cancel run={run} cancel={cancel} />
      </div>
      {doneCount > 0 && live.phase !== null && uploadingCount === null && <p class="soft">Phase: {phaseText(live)}</p>}
      {running.length > 0 && (
        <ul class="running-now" aria-label="Running now">
          {running.slice(0, MAX_RUNNING).map(({ uniqueId, label, forMs, usualMs: usual }) => (
            <li>
              <NodeLink runId={run.id} uniqueId={uniqueId || null} text={cut(label, MAX_NAME)} />{' '}
              <span class="soft">for {withUsual(forMs, usual)}</span>
            </li>
          ))}
        </ul>
      )}
      <RestOf count={running.length - MAX_RUNNING} words="more are running" />
      <RestOf count={waitingCount} words="wait for a connection" />
      {lastEnded !== null && !hasStarts && (
        <p>
          Ended last: <NodeLink runId={run.id} uniqueId={lastEnded.uniqueId} text={cut(lastEnded.label, MAX_NAME)} />{' '}
          <span class="soft">
            {roughly(lastEnded.agoMs)} ago; over OTLP the engine tells of nodes when they are over
          </span>
        </p>
      )}
    </section>
  );
}

function RestOf({ count, words }: { readonly count: number; readonly words: string }) {
  return count > 0 ? (
    <p class="soft">
      {count.toLocaleString('en')} {words}
    </p>
  ) : null;
}

/** Shows in a row of a list how far a run has come, what failed, and a button that cancels it. */
export function LiveLine({ run, shown }: { readonly run: CatalogRun; readonly shown: ShownLive }) {
  const { live, cancel } = shown;
  const failed = live.failed.slice(0, MAX_FAILED).map(({ label }) => cut(label, MAX_NAME));
  const more = live.failedCount > failed.length ? ` and ${live.failedCount - failed.length} more` : '';
  return (
    <span class="sub live-line">
      <span>{liveLine(live)}</span>
      {failed.length > 0 && (
        <span class="cause">
          Failed: {failed.join(', ')}
          {more}
        </span>
      )}
      <Cancel run={run} cancel={cancel} />
    </span>
  );
}

/** Shows nodes that are done as a bar of all that there will be, by what is usual where that is not known; nothing before there are any. */
export function LiveBar({ live }: { readonly live: LiveRun }) {
  const { counts, totalCount, usualCount } = live;
  const count = totalCount ?? usualCount;
  if (count === null) return null;
  const words = countedWords(counts, 0).map(([done, one, many]) => countText(done, one, many));
  return <CountsBar counts={counts} totalCount={count} label={`${positionText(live)}: ${words.join(', ')}`} />;
}

/** A button that cancels a run; nothing where the visitor cannot. */
function Cancel({ run, cancel }: { readonly run: CatalogRun; readonly cancel: CancelState | null }) {
  if (isFinal(run.status) || cancel === null || cancel === 'outOfReach') return null;
  if (cancel === 'requested') return <span class="soft">It is being canceled.</span>;
  return <PostButton action={`/runs/${run.id}/cancel`} text="Cancel" of={`run ${run.id}`} />;
}
