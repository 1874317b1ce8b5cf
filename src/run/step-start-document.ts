import type { StepStart } from '../store/step-start.js';
import type { StepStartDocument } from './execution-api.js';

/** A step's beginning, as the API and a spooled command spell it. */
export function stepStartDocument(start: StepStart): StepStartDocument {
  const { runKey, job, environment, project, reason, command, startedUnixMs, isLast, runOf } = start;
  const ids = { run_key: runKey, job, environment, project, reason };
  return { ...ids, command: [...command], started_unix_ms: startedUnixMs, is_last: isLast, run_of: runOf ?? null };
}
