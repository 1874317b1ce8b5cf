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
 * Measures the commands of a run's steps, in their order. A trace that holds commands of other runs too gives only these
 * steps' own; one of which nothing is kept any more gives none.
 * @param witness sees each record of the steps' traces once
 * @throws what the reader throws when a log cannot be read
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
