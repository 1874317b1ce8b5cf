import { parseTraceId, type TraceId } from '../../record/telemetry-record.js';
import type { CatalogRun, CatalogStep, RunCatalog } from '../../storage/run-catalog.js';
import { parseRunNumber } from '../../storage/state-tables.js';
import type { TraceCatalog } from '../../storage/trace-catalog.js';
import { ApiError } from '../api-error.js';

/** A run as a request named it. */
export interface FoundRun {
  readonly run: CatalogRun;
  readonly steps: readonly CatalogStep[];
  /** Traces that have its commands, in their order. */
  readonly traceIds: readonly TraceId[];
}

/** Finds runs by what requests call them. */
export class RunFinder {
  constructor(private readonly deps: { readonly catalog: RunCatalog; readonly traces: TraceCatalog }) {}

  /**
   * @param name the run's number, or a trace or invocation id of one of its commands; of several runs in one trace the first
   * @throws ApiError 404, also for what is another account's
   */
  async find(accountId: number, name: string): Promise<FoundRun> {
    const runId = await this.idOf(accountId, name);
    const run = runId === undefined ? undefined : await this.deps.catalog.findRun(accountId, runId);
    if (run === undefined) throw ApiError.notFound();
    const steps = await this.deps.catalog.stepsOf(accountId, [run.id]);
    const traceIds = steps.flatMap(({ invocations }) => invocations.map(({ traceId }) => traceId));
    return { run, steps, traceIds: [...new Set(traceIds)] };
  }

  private async idOf(accountId: number, name: string): Promise<number | undefined> {
    const runId = parseRunNumber(name);
    if (runId !== undefined) return runId;
    const traceId = parseTraceId(name);
    return traceId === undefined ? undefined : (await this.deps.traces.runsOf(accountId, traceId))[0];
  }
}
