import type { TelemetryRecord } from '../../record/telemetry-record.js';
import type { RecordLogReader } from '../../sink/record-log.js';
import { InvocationAssigner } from '../invocation-assigner.js';
import type { RunSummary } from '../run-summary.js';
import type { CommandMeasures } from './command-measures.js';
import { MeasureCollector } from './measure-collector.js';

/**
 * Reads a run's record log into the measures of its commands, in their order. The log is read in chunks, once; twice where
 * several commands share the trace. What is held is bounded: see MeasureCollector and InvocationAssigner.
 * @param run its summary, which speaks of the log up to its `logBytes`
 * @param witness sees each record of the log once, those of commands that are not measured too
 * @throws what the reader throws when the log cannot be read
 */
export async function readMeasures(
  reader: Pick<RecordLogReader, 'read'>,
  run: RunSummary,
  witness?: (record: TelemetryRecord) => void,
): Promise<readonly CommandMeasures[]> {
  const { traceId, invocations, logBytes } = run;
  const range = { fromOffset: 0, toOffset: logBytes };
  const collectors = new Map(invocations.map(({ index }) => [index, new MeasureCollector()]));
  const assigner = invocations.length > 1 ? new InvocationAssigner() : null;
  if (assigner !== null) {
    for await (const chunk of reader.read(traceId, range)) for (const logged of chunk) assigner.add(logged, 0);
  }
  for await (const chunk of reader.read(traceId, range)) {
    for (const logged of chunk) {
      collectors.get(assigner?.invocationIndexOf(logged) ?? 1)?.add(logged.record);
      witness?.(logged.record);
    }
  }
  return invocations.flatMap((invocation) => collectors.get(invocation.index)?.measures(invocation) ?? []);
}
