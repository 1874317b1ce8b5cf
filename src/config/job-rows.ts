import type { ConfigurationRow } from './configuration.js';
import { formatDuration } from './duration.js';
import { type JobDefinition, joinCommandLine } from './jobs.js';
import { MASK } from './mask.js';
import { placeRows } from './place-rows.js';

/** A job as rows of `run-bridge config`; values of its variables are masked. */
export function jobRows(job: JobDefinition, origin: string): ConfigurationRow[] {
  const row = (name: string, value: string | number | null) =>
    value === null ? [] : [{ name: `jobs.${job.name}.${name}`, value: String(value), origin }];
  const isStartable = job.commands.length > 0;
  return [
    ...placeRows('jobs', job, origin),
    ...row('environment', job.environment),
    ...job.commands.flatMap((words, index) => row(`command.${index + 1}`, joinCommandLine(words))),
    ...row('working-dir', isStartable ? job.workingDir : null),
    ...Object.keys(job.variables).flatMap((name) => row(`env.${name}`, MASK)),
    ...row('target', job.targetName),
    ...row('threads', job.threads),
    ...row('timeout', job.timeoutMs === null ? null : formatDuration(job.timeoutMs)),
  ];
}
