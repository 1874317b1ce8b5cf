import type { SpoolEntry } from '../files/spool-entry.js';
import { sanitizeCommand } from '../redaction/sanitize-command.js';
import type { CommandEnding } from '../storage/command-ending.js';
import { DEFAULT_JOB, type StepStart } from '../storage/step-start.js';
import type { ChildEnding } from './child-ending.js';
import type { CommandFacts } from './command-facts.js';

/** What the registry of steps is told of a command that begins. */
export function stepStartOf({ stepId, startedUnixMs, command, options }: CommandFacts): StepStart {
  const { runKey, job, environment, project, reason, isLast } = options.run;
  return {
    ...{ stepId, runKey, environment, project, reason, isLast, startedUnixMs },
    job: job ?? DEFAULT_JOB,
    command: sanitizeCommand(command.join(' ')).split(' '),
  };
}

/** What is left in a command's folder for whoever finds it. @param end `null` while the command is at work */
export function spoolEntryOf(facts: CommandFacts, end: SpoolEntry['end']): SpoolEntry {
  const { options, file, environment } = facts;
  const resourceAttributes = environment.OTEL_RESOURCE_ATTRIBUTES ?? '';
  return { start: stepStartOf(facts), to: options.to ?? null, file: file ?? null, resourceAttributes, end };
}

/** What the registry of steps is told of a command that ended. */
export function toCommandEnding(ending: ChildEnding): CommandEnding {
  switch (ending.kind) {
    case 'exited':
      return { kind: 'exited', exitCode: ending.exitCode };
    case 'killed':
      return { kind: 'killed', signal: ending.signal };
    case 'notStarted':
      return { kind: 'notStarted', reason: ending.reason };
  }
}
