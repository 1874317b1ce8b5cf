import type { EndedRun, RetentionStore } from '../store/retention-store.js';

const PAGE = 100;

/** Runs that ended up to then, the oldest first, page by page: what is removed meanwhile disturbs nothing. */
export async function* endedRuns(
  store: Pick<RetentionStore, 'listEnded'>,
  what: 'telemetry' | 'artifacts',
  untilUnixMs: number,
): AsyncGenerator<EndedRun> {
  let after: EndedRun | null = null;
  for (;;) {
    const page: readonly EndedRun[] = await store.listEnded(what, untilUnixMs, after, PAGE);
    yield* page;
    after = page.at(-1) ?? null;
    if (page.length < PAGE) return;
  }
}
