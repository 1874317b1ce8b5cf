import { RunMeasures } from '../../src/api/run-measures.js';
import { silentLogger } from '../../src/core/logger.js';
import type { LoggedRecord } from '../../src/log/record-log.js';
import type { RedactionLevel } from '../../src/redaction/known-names.js';
import { RunState } from '../../src/run/open-run.js';
import { RUN_TRACKER_DEFAULTS } from '../../src/run/run-tracker-config.js';
import type { RunSummary } from '../../src/run/verdict.js';
import { type RunDetails, RunDetailsReader } from '../../src/webhook/run-details.js';

/** Long after every command has ended. */
const LONG_AFTER_MS = 10_000_000;

/** How a reader of details is made for a test. */
export interface DetailsOptions {
  readonly redaction: RedactionLevel;
  /** Where the web port is reached. */
  readonly webUrl?: string;
  /** Why the records cannot be read. */
  readonly fault?: Error;
}

/** A run of one trace, judged after its end. */
export function summaryOfLog(log: readonly LoggedRecord[]): RunSummary {
  const [first] = log;
  if (first === undefined) throw new Error('no record');
  const state = new RunState(RUN_TRACKER_DEFAULTS);
  state.add(log, 0);
  const { invocations } = state.judge(LONG_AFTER_MS);
  const times = { firstSeenUnixMs: 1, lastSeenUnixMs: 2, logBytes: log.at(-1)?.endOffset ?? 0 };
  return { traceId: first.record.traceId, ...times, state: 'finished', invocations };
}

/** Reads details of the run whose records these are, whatever its number. */
export function detailsOfLog(
  log: readonly LoggedRecord[],
  { redaction, webUrl, fault }: DetailsOptions,
): RunDetailsReader {
  const run = summaryOfLog(log);
  const { traceId } = run;
  const step = { invocations: run.invocations.map((one) => ({ ...one, traceId, isSaved: true })) };
  const reader = {
    lengthBytes: async () => run.logBytes,
    async *read() {
      if (fault !== undefined) throw fault;
      for (let at = 0; at < log.length; at += 100) yield log.slice(at, at + 100);
    },
  };
  const store = { isUsed: async () => false, find: async () => undefined, save: async () => undefined };
  return new RunDetailsReader({
    catalog: { stepsOf: async () => [step] },
    measures: new RunMeasures({ store, tracker: { find: async () => run }, reader, logger: silentLogger }),
    reader,
    redaction,
    webUrl: () => webUrl ?? null,
  });
}

export const NONE_OMITTED = {
  errors: 0,
  otherErrors: 0,
  failedTests: 0,
  staleSources: 0,
  otherOutcomes: 0,
  warnings: 0,
  skipped: 0,
};
export const NO_NODES = { success: 0, warned: 0, failed: 0, error: 0, canceled: 0, skipped: 0, unfinished: 0 };
/** Nothing is known of a run. */
export const QUIET: RunDetails = {
  ...{
    ...{ startedUnixMs: null, commands: [], retryCommands: [], since: null, owners: [], time: '' },
    counts: NO_NODES,
    noOpCount: 0,
    errors: [],
    otherErrors: [],
    failedTests: [],
    staleSources: [],
    otherOutcomes: [],
  },
  ...{ warnings: [], skipped: [], skippedCount: 0, omitted: NONE_OMITTED, loggedWarningCount: 0 },
  ...{ statusMessage: null, url: null },
};

/** One model of a run had an error. */
export const DETAILS_OF_ONE_ERROR: RunDetails = {
  ...QUIET,
  counts: { ...NO_NODES, success: 5, error: 1 },
  errors: [
    {
      ...{ uniqueId: 'model.shop.broken', label: 'model broken', path: 'models/broken.sql', line: null },
      ...{ verdict: 'error', group: null, since: null },
      reason: 'Table "orders" does not exist',
    },
  ],
  url: 'https://runs.example.com/runs/1001',
};
