import { Router } from 'express';
import { ApiError } from '../../api/api-error.js';
import { authorize, callerOf } from '../../api/authenticator.js';
import { beginEventStream, HEARTBEAT_MS } from '../../api/event-stream.js';
import { writeOut } from '../../api/own/write-out.js';
import { may } from '../../api/permissions.js';
import { pause } from '../../core/clock.js';
import type { CatalogRun } from '../../storage/run-catalog.js';
import { isFinal, RUN_STATUS } from '../../storage/state-tables.js';
import type { PageDeps } from './page-deps.js';
import { admissionOf, type PageSession } from './page-session.js';

/** Pages that follow runs at once, of all accounts together; further ones ask for themselves anew, as without a stream. */
export const MAX_STREAMS = 64;
/** How often runs are looked at while somebody follows them, in milliseconds; less often where that takes long. */
const LOOK_MS = 1_000;
/** How many times as long as a look takes no other one is taken. */
const REST_FACTOR = 5;
/** When the browser is to come again with the cookie that it has then, in milliseconds. */
const MAX_STREAM_MS = 600_000;

/**
 * `GET /events`: tells pages when to ask for themselves anew, as server-sent events. `runs` names those of the account that began,
 * went on or ended, once a second at most: `{"ids":[1042]}`, or `{"ids":null}` for any of them, as at the beginning. `alive` comes
 * where nothing else has for 15 s, so that a page knows a stream that is held back on the way from one with nothing to say.
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
      let saidMs = startMs;
      while (!stop.aborted && clock.monotonicMs() - startMs < MAX_STREAM_MS) {
        await pause(clock, LOOK_MS, stop);
        if (stop.aborted || !(await isStillAdmitted())) return;
        const seen = await changes.seenOf(accountId);
        const ids = changedIds(known, seen);
        known = seen;
        const isSilent = clock.monotonicMs() - saidMs >= HEARTBEAT_MS;
        if (ids?.length === 0 && !isSilent) continue;
        await writeOut(response, ids?.length === 0 ? messageOf('alive', {}) : messageOf('runs', { ids }));
        saidMs = clock.monotonicMs();
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

/** Statuses of runs that are not over. */
const UNDER_WAY = Object.values(RUN_STATUS).filter((status) => !isFinal(status));
/** Runs that a look compares: the newest, and as many that are under way. */
const MAX_RUNS = 100;
/** Runs under way of which the ends of the record logs are compared. */
const MAX_LOGS = 25;
/** Of a run under way its length is shown, which grows while nothing comes: how often it counts as changed, in milliseconds. */
const STILL_MS = 5_000;
/** What was seen for an account that nobody follows any more is kept for so long, in milliseconds. */
const KEPT_MS = 60_000;

/** What was seen of an account's runs. */
interface SeenRuns {
  /** What there is to see of each, by its id. */
  readonly runs: ReadonlyMap<number, string>;
  /** What there is to see beside them. */
  readonly rest: string;
}

/**
 * Looks at the runs of accounts, once a second however many ask, where pages find them: in the state and the record logs. So it
 * knows those of all processes alike, and costs nothing while nobody asks.
 */
class RunChanges {
  private readonly looks = new Map<number, { readonly seen: Promise<SeenRuns>; untilMs: number }>();

  constructor(private readonly deps: Pick<PageDeps, 'catalog' | 'notes' | 'reader' | 'clock'>) {}

  /** What was seen of an account's runs a moment ago. @throws StoreError; errors of the reader */
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

  /** How long the record logs of runs are together, in bytes. */
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

/** Ids of runs that are not as they were; `null` where something beside the compared ones is different. */
function changedIds(before: SeenRuns, after: SeenRuns): readonly number[] | null {
  if (before === after) return [];
  const ids = [...new Set([...before.runs.keys(), ...after.runs.keys()])];
  const changed = ids.filter((id) => before.runs.get(id) !== after.runs.get(id));
  return changed.length === 0 && before.rest !== after.rest ? null : changed;
}
