import type { RunFinder } from '../api/native/run-finder.js';
import type { TraceId } from '../record/telemetry-record.js';

/** What sends runs again. */
export interface RunResenderDeps {
  readonly finder: Pick<RunFinder, 'find'>;
  /** `undefined` where this process exports nothing. */
  readonly exports:
    | {
        readonly destinations: readonly (readonly [name: string, where: string])[];
        resend(traceIds: readonly TraceId[], destination: string | null, deadline: AbortSignal): Promise<void>;
      }
    | undefined;
  /** Whether several processes share the runs, each with those that it builds. */
  readonly isShared: boolean;
}

/** A run cannot be sent; the message says why, and what to do. */
export class RunResendError extends Error {
  override readonly name = 'RunResendError';
}

/** How long exports may take to start, in milliseconds. */
const START_MS = 10_000;

/** Sends runs to destinations again: for one that lost them, refused a part of them, or was configured after them. */
export class RunResender {
  constructor(private readonly deps: RunResenderDeps) {}

  /** Names of the destinations that a run can be sent to. */
  get destinations(): readonly string[] {
    return this.deps.isShared ? [] : (this.deps.exports?.destinations ?? []).map(([name]) => name);
  }

  /**
   * Has a run sent from its first record on. Spans keep their ids, so a receiver that knows them has them once or twice, as it does with any that come twice.
   * @param name the run's number, or a trace or invocation id of one of its commands
   * @param destination `null` for all
   * @returns its number, and the destinations that get it
   * @throws ApiError 404; RunResendError; StoreError
   */
  async resend(
    accountId: number,
    name: string,
    destination: string | null,
  ): Promise<{ readonly runId: number; readonly destinations: readonly string[] }> {
    const { finder, exports, isShared } = this.deps;
    const { run, traceIds } = await finder.find(accountId, name);
    if (isShared) throw new RunResendError('Several processes share the runs: a run cannot be sent again there.');
    const { destinations } = this;
    if (exports === undefined || destinations.length === 0) {
      throw new RunResendError(
        'There is no destination: set OTEL_EXPORTER_OTLP_ENDPOINT, or name one in run-bridge.yaml.',
      );
    }
    if (destination !== null && !destinations.includes(destination)) {
      throw new RunResendError(`There is no destination ${destination}; there is ${destinations.join(', ')}.`);
    }
    if (traceIds.length === 0) throw new RunResendError(`Run ${run.id} has no telemetry that could be sent.`);
    await exports.resend(traceIds, destination, AbortSignal.timeout(START_MS));
    return { runId: run.id, destinations: destination === null ? destinations : [destination] };
  }
}
