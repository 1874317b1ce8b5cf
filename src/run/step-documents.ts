import type { CommandEnding, StepStart } from '../storage/steps.js';
import type { EndingDocument } from './ending-schema.js';
import type { StepStartDocument } from './execution-api.js';

// How steps are written; what reads them loads a library of schemas, which programs that write alone do without.

/** Returns how a command ended, as `run.json` and the API spell it. */
export function endingDocument(ending: CommandEnding): EndingDocument {
  switch (ending.kind) {
    case 'exited':
      return {
        kind: 'exited',
        exit_code: ending.exitCode,
        ...(ending.stoppedBy === undefined ? {} : { stopped_by: ending.stoppedBy }),
      };
    case 'notStarted':
      return { kind: 'not_started', reason: ending.reason };
    case 'killed':
    case 'within':
    case 'unknown':
      return ending;
  }
}

/** Returns a step's beginning, as the API and a spooled command spell it. */
export function stepStartDocument(start: StepStart): StepStartDocument {
  const { runKey, job, environment, project, reason, command, startedUnixMs, isLast, runOf } = start;
  const ids = { run_key: runKey, job, environment, project, reason };
  return { ...ids, command: [...command], started_unix_ms: startedUnixMs, is_last: isLast, run_of: runOf ?? null };
}
