import type { TraceId } from '../../record/ids.js';
import { RunState } from '../../run/run-state.js';
import type { RunSummary } from '../../run/run-summary.js';
import { RUN_TRACKER_DEFAULTS } from '../../run/run-tracker-config.js';
import type { RecordLogReader } from '../../sink/record-log.js';
import { CliError } from '../cli-error.js';
import { EXIT } from '../exit-code.js';
import type { RunFiles } from './run-files.js';

const { quietAfterProcessMs, quietAfterInvocationMs } = RUN_TRACKER_DEFAULTS;

/**
 * A run's summary: `run.json` where it speaks of the whole record log, else summed up from the log. Then commands whose end
 * was seen have a verdict, and others, which may be at work, have none.
 * @throws CliError when no record is there.
 */
export async function readRun(traceId: TraceId, files: RunFiles, reader: RecordLogReader): Promise<RunSummary> {
  const logBytes = await reader.lengthBytes(traceId);
  const written = await files.summary(traceId);
  if (written !== undefined && written.logBytes === logBytes) return written;
  const state = new RunState(RUN_TRACKER_DEFAULTS);
  for await (const chunk of reader.read(traceId, { fromOffset: 0, toOffset: logBytes })) state.add(chunk, 0);
  const { invocations } = state.judge(Math.max(quietAfterProcessMs, quietAfterInvocationMs));
  if (invocations.length === 0) {
    throw new CliError(
      EXIT.failed,
      `no record of ${traceId} is in ${files.dataFolder}; it was begun just now, or damaged`,
    );
  }
  const isFinished = invocations.every(({ verdict }) => verdict !== null);
  const seen = { firstSeenUnixMs: written?.firstSeenUnixMs ?? 0, lastSeenUnixMs: written?.lastSeenUnixMs ?? 0 };
  return { traceId, ...seen, state: isFinished ? 'finished' : 'open', logBytes, invocations };
}
