import { Router } from 'express';
import { ApiError } from '../../api/api-error.js';
import { authorize, callerOf } from '../../api/authenticator.js';
import { beginEventStream, HEARTBEAT_MS, writeOut } from '../../api/event-stream.js';
import { may } from '../../api/permissions.js';
import { pause } from '../../core/clock.js';
import type { CatalogRun } from '../../storage/run-catalog.js';
import { isFinal, RUN_STATUS } from '../../storage/state-tables.js';
import type { PageDeps } from './page-deps.js';
import { admissionOf, type PageSession } from './page-session.js';

/** The most pages with a stream, of all accounts together; further ones poll, as pages without a stream do. */
export const MAX_STREAMS = 64;
/** How often runs are checked while somebody follows them, in milliseconds; less often if a check takes long. */
const LOOK_MS = 1_000;
/** The pause after a check, as a multiple of its duration. */
const REST_FACTOR = 5;
/** After this time the browser has to connect again with its current cookie, in milliseconds. */
const MAX_STREAM_MS = 600_000;

/**
 * Serves `GET /events`, which notifies pages by server-sent events when they have to reload. `runs` names runs of the account that began, changed or ended, at most once a second: `{"ids":[1042]}`,
 * or `{"ids":null}` for any run, as at the beginning. `alive` is sent after 15 s without another event, so that a page can distinguish a blocked stream from a silent one.
 */
export function runEventsRouter(session: PageSession, deps: PageDeps): Router {
  const { authenticator, clock, stopping } = deps;
  const changes = new RunChanges(deps);
  let streamCount = 0;
  const router = Router();
  router.get('/events', authorize('runs:read'), async (request, response) => {
    const { accountId, tokenId } = callerOf(response);
    const gone = new AbortController();
    response.once('close', () => gone.abort());
    const stop = AbortSignal.any([gone.signal, stopping]);
    let known = await changes.seenOf(accountId);
    if (streamCount >= MAX_STREAMS) {
      throw new ApiError(503, `${MAX_STREAMS} pages follow runs already; try again later.`, { 'Retry-After': '60' });
    }
    streamCount += 1;
    try {
      await beginEventStream(response);
      await writeOut(response, messageOf('runs', { ids: null }));
      const startMs = clock.monotonicMs();
      let lastSentMs = startMs;
      while (!stop.aborted && clock.monotonicMs() - startMs < MAX_STREAM_MS) {
        await pause(clock, LOOK_MS, stop);
        if (stop.aborted || !(await isStillAdmitted())) return;
        const seen = await changes.seenOf(accountId);
        const ids = changedIds(known, seen);
        known = seen;
        const isSilent = clock.monotonicMs() - lastSentMs >= HEARTBEAT_MS;
        if (ids?.length === 0 && !isSilent) continue;
        await writeOut(response, ids?.length === 0 ? messageOf('alive', {}) : messageOf('runs', { ids }));
        lastSentMs = clock.monotonicMs();
      }
    } finally {
      streamCount -= 1;
      response.end();
    }

    async function isStillAdmitted(): Promise<boolean> {
      const admission = await admissionOf(authenticator, session, request);
      return (
        admission.kind === 'admitted' && admission.caller.tokenId === tokenId && may(admission.caller, 'runs:read')
      );
    }
  });
  return router;
}

function messageOf(name: string, data: object): string {
  return `event: ${name}\ndata: ${JSON.stringify(data)}\n\n`;
}

/** Statuses of runs that have not ended. */
const UNDER_WAY = Object.values(RUN_STATUS).filter((status) => !isFinal(status));
/** The most runs that are compared: the newest, and as many in progress. */
const MAX_RUNS = 100;
/** The most runs in progress whose record logs are compared by length. */
const MAX_LOGS = 25;
/** How often a run in progress counts as changed without new records, since its page shows its duration, in milliseconds. */
const STILL_MS = 5_000;
/** How long the last state of an account is kept after nobody follows it any more, in milliseconds. */
const KEPT_MS = 60_000;

/** The last seen state of an account's runs. */
interface SeenRuns {
  /** The visible state of each run by its id. */
  readonly runs: ReadonlyMap<number, string>;
  /** The visible state of everything else. */
  readonly rest: string;
}

/**
 * Detects changes of runs in the state and the record logs, where pages read them: at most once a second for each account, however many pages ask. So it sees runs of all processes, and costs nothing
 * while nobody asks.
 */
class RunChanges {
  private readonly looks = new Map<number, { readonly seen: Promise<SeenRuns>; untilMs: number }>();

  constructor(private readonly deps: Pick<PageDeps, 'catalog' | 'notes' | 'reader' | 'clock'>) {}

  /** Returns the recent state of an account's runs. @throws StoreError; errors of the reader */
  async seenOf(accountId: number): Promise<SeenRuns> {
    const { clock } = this.deps;
    const startMs = clock.monotonicMs();
    const last = this.looks.get(accountId);
    if (last !== undefined && startMs < last.untilMs) return await last.seen;
    for (const [id, { untilMs }] of this.looks) if (untilMs < startMs - KEPT_MS) this.looks.delete(id);
    const look = { seen: this.look(accountId), untilMs: Number.POSITIVE_INFINITY };
    this.looks.set(accountId, look);
    try {
      return await look.seen;
    } finally {
      const tookMs = clock.monotonicMs() - startMs;
      look.untilMs = startMs + Math.max(LOOK_MS, REST_FACTOR * tookMs);
    }
  }

  private async look(accountId: number): Promise<SeenRuns> {
    const { catalog, notes, clock } = this.deps;
    const newest = { orderBy: 'created', isDescending: true, limit: MAX_RUNS, offset: 0 } as const;
    const { items, totalCount } = await catalog.listRuns(accountId, newest);
    const { items: underWay } = await catalog.listRuns(accountId, { ...newest, statuses: UNDER_WAY });
    const lengths = await this.logLengths(accountId, underWay.slice(0, MAX_LOGS));
    const setAside = await notes.listSetAside(accountId);
    const still = Math.floor(clock.monotonicMs() / STILL_MS);
    const seen = [
      ...items.map((run) => [run.id, JSON.stringify(run)] as const),
      ...underWay.map((run) => [run.id, JSON.stringify([run, lengths.get(run.id), still])] as const),
    ];
    return { runs: new Map(seen), rest: `${totalCount} ${setAside.length}` };
  }

  /** Returns the total length of the record logs of runs, in bytes. */
  private async logLengths(accountId: number, runs: readonly CatalogRun[]): Promise<ReadonlyMap<number, number>> {
    const { catalog, reader } = this.deps;
    const lengths = new Map<number, number>();
    const steps = await catalog.stepsOf(
      accountId,
      runs.map(({ id }) => id),
    );
    for (const { runId, invocations } of steps) {
      for (const traceId of new Set(invocations.map((one) => one.traceId))) {
        lengths.set(runId, (lengths.get(runId) ?? 0) + (await reader.lengthBytes(traceId)));
      }
    }
    return lengths;
  }
}

/** Returns the ids of runs that changed; `null` if something besides the compared runs changed. */
function changedIds(before: SeenRuns, after: SeenRuns): readonly number[] | null {
  if (before === after) return [];
  const ids = [...new Set([...before.runs.keys(), ...after.runs.keys()])];
  const changed = ids.filter((id) => before.runs.get(id) !== after.runs.get(id));
  return changed.length === 0 && before.rest !== after.rest ? null : changed;
}
