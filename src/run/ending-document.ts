import type { CommandEnding } from '../storage/steps.js';
import type { EndingDocument } from './ending-schema.js';

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
