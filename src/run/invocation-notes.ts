import { type Clock, pause, type Timer } from '../core/clock.js';
import type { HealthState } from '../core/health.js';
import type { Component } from '../core/lifecycle.js';
import type { Logger } from '../core/logger.js';
import { accountOf, accountOfStep, importBeganUnixMs, type Resource, stepIdOf } from '../record/attributes.js';
import { type TraceId, toUnixMs } from '../record/telemetry-record.js';
import { FIRST_ACCOUNT_ID } from '../storage/account-store.js';
import type { InvocationNote, InvocationStore, TraceNote } from '../storage/invocation-store.js';
import type { RunRow } from '../storage/run-store.js';
import { NOT_FINISHED } from '../storage/state-tables.js';
import { DEFAULT_JOB } from '../storage/steps.js';
import { StoreError } from '../storage/store-error.js';
import type { RunEvent, RunListener } from './run-event.js';
import type { ScopeFinder } from './scope-finder.js';
import type { InvocationSummary, RunSummary } from './verdict.js';

/** Dependencies of `InvocationNotes`. */
export interface InvocationNotesDeps {
  readonly store: Pick<InvocationStore, keyof InvocationStore>;
  /** Writes the files of a finished run: it is called first, and a run is saved only when it succeeds. `null` for none. */
  readonly files: RunListener | null;
  readonly scopes: ScopeFinder;
  readonly clock: Clock;
  readonly logger: Logger;
}

/** Starts of runs are saved in batches, after this delay; a run that ended by then costs one write in all. In milliseconds. */
const GATHER_MS = 50;
/** With this many waiting, they are saved at once. */
const MAX_WAITING = 1_000;
/** Number of earlier traces checked per batch, and the pause between batches. */
const UNNOTED_COUNT = 50;
const UNNOTED_PAUSE_MS = 10;
/** No id of a step is as long as that, with its account's number. */
const MAX_STEP_ID_LENGTH = 200;
/** The latest possible date, which represents a run that has not ended. */
const MAX_UNIX_MS = NOT_FINISHED - 1;

/** Set-aside runs that are listed. */
const MAX_LISTED = 100;

/** A run that the database can never store: it has no id, and exists only in its record log. */
export interface SetAsideRun {
  readonly traceId: TraceId;
  /** The command line of its first command; `null` if unknown. */
  readonly command: string | null;
  readonly firstSeenUnixMs: number;
  readonly lastSeenUnixMs: number;
  /** Why, in one sentence. */
  readonly reason: string;
}

const SET_ASIDE_REASON = 'The database cannot keep it: a number or a text of it is too large.';

/** Pending changes of a trace. */
interface Waiting {
  readonly run: RunSummary;
  /** Positions of the invocations whose files can be read. */
  readonly saved: ReadonlySet<number>;
}

/**
 * Saves invocations, so that each belongs to a run: that of its step, or one for itself. Traces of earlier processes or versions
 * are checked after a start.
 */
export class InvocationNotes implements RunListener, Component {
  readonly name = 'run notes';
  private waiting = new Map<TraceId, Waiting>();
  private writing: Promise<void> = Promise.resolve();
  private timer: Timer | null = null;
  private readonly stopping = new AbortController();
  private looking: Promise<void> = Promise.resolve();
  /** Traces that the database can never keep, of all time. */
  setAsideCount = 0;

  constructor(private readonly deps: InvocationNotesDeps) {}

  async start(): Promise<void> {
    this.lookAgain();
  }

  /** Saves earlier traces in the background. */
  lookAgain(): void {
    const { looking } = this;
    this.looking = looking
      .then(() => this.noteEarlier())
      .catch((error: unknown) => {
        this.deps.logger.error({ error: String(error) }, 'failed to save earlier runs; the next start tries again');
      });
  }

  async shutdown(): Promise<void> {
    this.stopping.abort();
    this.timer?.cancel();
    await this.looking;
    await this.flush();
  }

  /** Returns the state for `/readyz`; skipped runs do not block others. */
  health(): HealthState {
    return { ready: true, details: { setAsideCount: this.setAsideCount } };
  }

  /** Lists the skipped runs of the account, latest first; at most 100. @throws StoreError */
  async listSetAside(accountId: number): Promise<readonly SetAsideRun[]> {
    // Usually there is none, and looking for them reads all rows.
    if (this.setAsideCount === 0) return [];
    const { parseRun } = await import('./parse-run.js');
    return (await this.deps.store.listSetAside(MAX_LISTED)).flatMap(({ traceId, summary, ...row }) => {
      const invocations = parseRun(summary)?.invocations ?? [];
      const owners = invocations.map(({ resource }) => accountOf(resource) ?? FIRST_ACCOUNT_ID);
      if (owners.length === 0) owners.push(FIRST_ACCOUNT_ID);
      if (owners.some((owner) => owner !== accountId)) return [];
      const { firstSeenUnixMs, lastSeenUnixMs } = row;
      const command = invocations[0]?.rawCommand ?? null;
      return [{ traceId, command, firstSeenUnixMs, lastSeenUnixMs, reason: SET_ASIDE_REASON }];
    });
  }

  /** @throws if the end of a run cannot be saved, or its files were not written: the caller notifies again. */
  async onRunEvent(event: RunEvent): Promise<void> {
    const { run } = event;
    // Starts are not delayed by the files of other runs.
    if (event.type === 'started') this.wait(run, []);
    // An error is reported before the files of the run exist.
    if (event.type === 'invocationEnded' && event.invocation.verdict === 'error') this.wait(run, []);
    await this.deps.files?.onRunEvent(event);
    if (event.type === 'invocationEnded' && run.state === 'open') this.wait(run, [event.invocation.index]);
    if (event.type !== 'finished') return;
    this.wait(
      run,
      run.invocations.map(({ index }) => index),
    );
    await this.flush();
  }

  /** Resolves when all pending changes are saved. @throws StoreError */
  async flush(): Promise<void> {
    this.timer?.cancel();
    this.timer = null;
    // Callers that arrive during a write share the next one.
    const next = this.writing.catch(() => {}).then(() => this.write());
    this.writing = next;
    await next;
  }

  private async write(): Promise<void> {
    const { waiting } = this;
    if (waiting.size === 0) return;
    this.waiting = new Map();
    try {
      const notes = [...waiting.values()].map(({ run, saved }) => this.noteOf(run, saved));
      await this.note(notes);
    } catch (error) {
      for (const [traceId, one] of waiting) if (!this.waiting.has(traceId)) this.waiting.set(traceId, one);
      throw error;
    }
  }

  /**
   * Rows that the database can never store do not block others: of such a trace only a summary is saved, and if that fails
   * too, it is skipped. Its record log is complete. @throws StoreError for temporary failures
   */
  private async note(notes: readonly TraceNote[]): Promise<void> {
    const { store, clock, logger } = this.deps;
    const nowUnixMs = clock.nowUnixMs();
    try {
      await store.note(notes, nowUnixMs);
      return;
    } catch (error) {
      if (!isUnstorable(error)) throw error;
      if (notes.length > 1) {
        for (const one of notes) await this.note([one]);
        return;
      }
    }
    for (const { traceId, invocations } of notes) {
      try {
        await store.note([{ traceId, invocations: invocations.map(bareNote) }], nowUnixMs);
        logger.warn({ traceId }, 'the database cannot store the details of a run; only its summary was saved');
      } catch (error) {
        if (!isUnstorable(error)) throw error;
        await store.setAside([traceId]);
        this.setAsideCount += 1;
        logger.error({ traceId, reason: error.message }, 'a run cannot be stored in the database; it was skipped');
      }
    }
  }

  private wait(run: RunSummary, saved: readonly number[]): void {
    const before = this.waiting.get(run.traceId);
    this.waiting.set(run.traceId, { run, saved: new Set([...(before?.saved ?? []), ...saved]) });
    if (this.timer !== null && this.waiting.size < MAX_WAITING) return;
    this.timer?.cancel();
    this.timer = this.deps.clock.after(this.waiting.size < MAX_WAITING ? GATHER_MS : 0, () => {
      this.flush().catch((error: unknown) => {
        this.deps.logger.error({ error: String(error) }, 'failed to save runs; retrying with the next batch');
      });
    });
  }

  private async noteEarlier(): Promise<void> {
    const { store, clock } = this.deps;
    this.setAsideCount = await store.countSetAside();
    let rows = await store.listUnnoted(UNNOTED_COUNT);
    if (rows.length === 0) return;
    // Loaded when there is something to read back: no start has to wait for a schema library.
    const { parseRun } = await import('./parse-run.js');
    while (rows.length > 0 && !this.stopping.signal.aborted) {
      const notes = rows.map((row) => {
        const run = parseRun(row.summary);
        return run === undefined ? { traceId: row.traceId, invocations: [] } : this.noteOf(run, savedIn(row, run));
      });
      await this.note(notes);
      await pause(clock, UNNOTED_PAUSE_MS, this.stopping.signal);
      rows = await store.listUnnoted(UNNOTED_COUNT);
    }
  }

  private noteOf({ traceId, invocations }: RunSummary, saved: ReadonlySet<number>): TraceNote {
    return { traceId, invocations: invocations.map((one) => this.invocationOf(one, saved.has(one.index))) };
  }

  private invocationOf(invocation: InvocationSummary, isSaved: boolean): InvocationNote {
    const { resource, step } = invocation;
    const importBegan = importBeganUnixMs(resource);
    const text = (name: string) => {
      const value = resource.attributes[name];
      return typeof value === 'string' && value !== '' ? value : null;
    };
    return {
      index: invocation.index,
      accountId: accountOf(resource),
      stepId: step?.stepId ?? null,
      namedStepId: namedStepOf(resource),
      ...(importBegan !== null && { importBeganUnixMs: importBegan }),
      command: invocation.rawCommand,
      verdict: invocation.verdict,
      statusMessage: invocation.statusMessage,
      startedUnixMs: toUnixMs(invocation.startTimeUnixNano),
      endedUnixMs: toUnixMs(invocation.endTimeUnixNano),
      isSaved,
      parquetFile: invocation.parquetFile,
      engineVersion: text('service.version'),
      gitBranch: text('vcs.ref.head.name'),
      gitSha: text('vcs.ref.head.revision'),
      scope: this.deps.scopes.scopeOf(invocation),
    };
  }
}

function isUnstorable(error: unknown): error is StoreError {
  return error instanceof StoreError && error.code === 'unstorable';
}

/** Returns a row that fits into every database, and says what is missing. */
function bareNote(note: InvocationNote): InvocationNote {
  const startedUnixMs = Math.min(note.startedUnixMs, MAX_UNIX_MS);
  return {
    ...note,
    ...{ command: null, engineVersion: null, gitBranch: null, gitSha: null },
    statusMessage: 'What is known of this command is too large for the database; its record log has it whole.',
    startedUnixMs,
    endedUnixMs: Math.max(startedUnixMs, Math.min(note.endedUnixMs, MAX_UNIX_MS)),
    scope: { job: DEFAULT_JOB, environment: null, project: null },
  };
}

/** Steps of an earlier process are complete once every listener has processed the run's end. */
function savedIn({ state, parquetBytes, logBytes }: RunRow, { invocations }: RunSummary): ReadonlySet<number> {
  const isWhole = state === 'finished' && parquetBytes === logBytes;
  return new Set(isWhole ? invocations.map(({ index }) => index) : []);
}

/** Returns the step that a resource names, if it is of the same account; senders may write anything there. */
function namedStepOf(resource: Resource): string | null {
  const stepId = stepIdOf(resource);
  if (stepId === null || stepId.length > MAX_STEP_ID_LENGTH) return null;
  return accountOfStep(stepId) === accountOf(resource) ? stepId : null;
}
