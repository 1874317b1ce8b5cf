import type { Clock } from '../core/clock.js';
import type { RecordLogReader } from '../log/record-log.js';
import type { TraceId } from '../record/ids.js';
import { parseRun } from '../run/parse-run.js';
import { type EndingTimes, RunState } from '../run/run-state.js';
import type { RunSummary } from '../run/run-summary.js';
import { type StepReader, TraceSteps } from '../run/trace-steps.js';
import type { RunStore } from '../storage/run-store.js';

/** What runs are read with. */
export interface SharedRunReaderDeps {
  /** Runs that this process has. */
  readonly own: { has(traceId: TraceId): boolean; find(traceId: TraceId): Promise<RunSummary | undefined> };
  readonly runs: Pick<RunStore, 'find'>;
  readonly reader: RecordLogReader;
  readonly steps: Pick<StepReader, 'stepsOf'>;
  readonly times: EndingTimes;
  readonly clock: Clock;
}

/** Runs as they are known now, in any process: of one that another process has, what its log adds up to. */
export class SharedRunReader {
  constructor(private readonly deps: SharedRunReaderDeps) {}

  async find(traceId: TraceId): Promise<RunSummary | undefined> {
    const { own, runs, reader } = this.deps;
    if (own.has(traceId)) return await own.find(traceId);
    const row = await runs.find(traceId);
    const logBytes = await reader.lengthBytes(traceId);
    if (row?.state === 'finished' && row.logBytes === logBytes) return parseRun(row.summary);
    if (logBytes === 0) return row && parseRun(row.summary);
    const { clock, times, steps } = this.deps;
    const state = new RunState(times);
    const nowMs = clock.monotonicMs();
    for await (const records of reader.read(traceId, { fromOffset: 0, toOffset: logBytes })) state.add(records, nowMs);
    const known = new TraceSteps(traceId, { ...NO_CHANGES, stepsOf: (id) => steps.stepsOf(id) });
    await known.refresh([]);
    const seenMs = clock.nowUnixMs();
    return {
      traceId,
      firstSeenUnixMs: row?.firstSeenUnixMs ?? seenMs,
      lastSeenUnixMs: row?.lastSeenUnixMs ?? seenMs,
      // Whether it is over is for the process to say that has it.
      state: 'open',
      logBytes,
      invocations: state.judge(nowMs, known).invocations,
    };
  }
}

const NO_CHANGES: Pick<StepReader, 'findStep' | 'attach'> = {
  findStep: async () => undefined,
  attach: async () => false,
};
