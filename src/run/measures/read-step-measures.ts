import type { RecordLogReader } from '../../log/record-log.js';
import type { TraceId } from '../../record/ids.js';
import type { TelemetryRecord } from '../../record/telemetry-record.js';
import type { CatalogStep } from '../../storage/run-catalog.js';
import type { RunTracker } from '../run-tracker.js';
import type { CommandMeasures } from './command-measures.js';
import { readMeasures } from './read-measures.js';

/** The measures of a command, and the trace that it is in. */
export interface StepMeasures {
  readonly traceId: TraceId;
  readonly command: CommandMeasures;
}

/**
 * Measures the commands of a run's steps, in their order. Of a trace shared with other runs, only the commands of
 * these steps are returned; a step without any data left returns none.
 * @param witness receives each record of the steps' traces once
 * @throws errors of the reader if a log cannot be read
 */
export async function readStepMeasures(
  steps: readonly Pick<CatalogStep, 'invocations'>[],
  { tracker, reader }: { readonly tracker: Pick<RunTracker, 'find'>; readonly reader: Pick<RecordLogReader, 'read'> },
  witness?: (record: TelemetryRecord) => void,
): Promise<readonly StepMeasures[]> {
  const invocations = steps.flatMap((step) => step.invocations);
  const own = new Set(invocations.map(({ traceId, index }) => `${traceId} ${index}`));
  const measures: StepMeasures[] = [];
  for (const traceId of new Set(invocations.map((one) => one.traceId))) {
    const run = await tracker.find(traceId);
    if (run === undefined) continue;
    for (const command of await readMeasures(reader, run, witness)) {
      if (own.has(`${traceId} ${command.invocation.index}`)) measures.push({ traceId, command });
    }
  }
  return measures;
}
