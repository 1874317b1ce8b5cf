import type { Clock } from '../core/clock.js';
import type { Component } from '../core/component.js';
import type { Logger } from '../core/logger.js';
import { pause } from '../core/pause.js';
import { reasonOf } from '../core/reason-of.js';
import type { PullStore, WatchScope } from '../storage/pull-store.js';
import type { PlatformApi } from './platform-api.js';

/** What a watch looks for. */
export interface RunWatchConfig {
  readonly scope: WatchScope;
  /** How often, in milliseconds. */
  readonly intervalMs: number;
  /** Where it begins when it never ran before, and how far it looks back at its start, as a time of creation. */
  readonly sinceUnixMs: number;
  /** More runs than this do not wait at a time; the others are found when some are done. */
  readonly maxWaiting: number;
}

/** What a watch works with. */
export interface RunWatchDeps {
  readonly api: PlatformApi;
  readonly store: PullStore;
  /** Called when there may be something new in the store. */
  readonly onNoted: () => void;
  readonly clock: Clock;
  readonly logger: Logger;
}

/** A run may be listed a while after others that were created later, in milliseconds. */
const OVERLAP_MS = 10 * 60_000;
/** The platform's clock may be ahead of ours, in milliseconds. */
const MAX_AHEAD_MS = 86_400_000;

/**
 * Finds new runs of an account by asking for its list again and again, and notes them in the store. It goes on where it
 * stopped, by a cursor in the store: the time of creation up to which all runs are noted.
 */
export class RunWatch implements Component {
  readonly name = 'platform watch';
  private readonly stop = new AbortController();
  private working: Promise<void> = Promise.resolve();

  constructor(
    private readonly config: RunWatchConfig,
    private readonly deps: RunWatchDeps,
  ) {}

  /**
   * Looks once, so that a wrong token or account is told at once, then goes on in the background.
   * @param stop gives up the first look
   * @throws PlatformError
   */
  async start(stop?: AbortSignal): Promise<void> {
    stop?.addEventListener('abort', () => this.stop.abort(stop.reason), { once: true });
    const cursor = await this.deps.store.findCursor(this.config.scope);
    await this.look(Math.min(cursor ?? Number.POSITIVE_INFINITY, this.config.sinceUnixMs));
    this.working = this.work();
  }

  async shutdown(_deadline: AbortSignal): Promise<void> {
    this.stop.abort();
    await this.working;
  }

  private async work(): Promise<void> {
    for (;;) {
      await pause(this.deps.clock, this.config.intervalMs, this.stop.signal);
      if (this.stop.signal.aborted) return;
      try {
        const cursor = await this.deps.store.findCursor(this.config.scope);
        await this.look(cursor ?? this.config.sinceUnixMs);
      } catch (error) {
        if (this.stop.signal.aborted) return;
        const reason = reasonOf(error);
        this.deps.logger.warn({ reason }, 'failed to ask the platform for new runs; retrying');
      }
    }
  }

  /** Notes the runs created since a time, page by page; the cursor follows. */
  private async look(fromUnixMs: number): Promise<void> {
    const { api, store, onNoted, clock, logger } = this.deps;
    const { scope, maxWaiting } = this.config;
    const nowUnixMs = clock.nowUnixMs();
    const query = {
      jobId: scope.jobId,
      createdFromUnixMs: Math.max(0, fromUnixMs - OVERLAP_MS),
      createdToUnixMs: nowUnixMs + MAX_AHEAD_MS,
    };
    for await (const runs of api.listRuns(query, this.stop.signal)) {
      const keys = runs.map(({ runId }) => ({ platform: scope.platform, accountId: scope.accountId, runId }));
      if (!(await store.add(keys, nowUnixMs, maxWaiting))) {
        logger.info({ maxWaiting }, 'too many hosted runs are waiting; the search for new ones is paused');
        break;
      }
      onNoted();
      const newest = Math.max(...runs.map(({ createdUnixMs }) => createdUnixMs ?? 0));
      if (newest > ((await store.findCursor(scope)) ?? 0)) await store.saveCursor(scope, newest);
    }
  }
}
