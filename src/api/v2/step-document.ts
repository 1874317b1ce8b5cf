import { type Redactor, statusText } from '../../redaction/redactor.js';
import type { CatalogStep } from '../../storage/run-catalog.js';
import { isFinal, RUN_STATUS } from '../../storage/run-status.js';
import { formatDuration, formatTime, formatTimeOrNull, humanDuration } from './platform-time.js';
import { statusColor, statusWord } from './status-words.js';

/** What a step wrote, as text; empty where it was not asked for. */
export interface StepLogs {
  readonly logs: string;
  readonly debugLogs: string;
}

/** What stands for the logs where nobody asked for them. */
export const NO_LOGS: StepLogs = { logs: '', debugLogs: '' };

/** A step as the platform's API shows it. */
export type StepDocument = ReturnType<typeof stepDocument>;

/** @param redactor what the caller is shown of texts */
export function stepDocument(
  step: CatalogStep,
  { logs, debugLogs }: StepLogs,
  { nowUnixMs, redactor }: { readonly nowUnixMs: number; readonly redactor: Redactor },
) {
  const { status, createdUnixMs, startedUnixMs } = step;
  const finishedUnixMs = isFinal(status) ? step.finishedUnixMs : null;
  const isAtWork = status !== RUN_STATUS.starting && status !== RUN_STATUS.queued;
  const workUnixMs = startedUnixMs ?? (isAtWork ? createdUnixMs : null);
  const durationMs = workUnixMs === null ? 0 : (finishedUnixMs ?? nowUnixMs) - workUnixMs;
  const command = commandOf(step, redactor);
  return {
    id: step.id,
    run_id: step.runId,
    account_id: step.accountId,
    index: step.index,
    status,
    // Clients take the text between the backticks.
    name: `Invoke dbt with \`${command}\``,
    logs,
    debug_logs: debugLogs,
    created_at: formatTime(createdUnixMs),
    updated_at: formatTime(step.updatedUnixMs),
    started_at: formatTimeOrNull(workUnixMs),
    finished_at: formatTimeOrNull(finishedUnixMs),
    status_color: statusColor(status),
    status_humanized: statusWord(status),
    status_message: step.statusMessage === null ? null : statusText(step.statusMessage, redactor),
    duration: formatDuration(durationMs),
    duration_humanized: humanDuration(durationMs),
    run_step_command: command,
  };
}

/** The engine command where there is one, else what was started. */
function commandOf({ command, invocations }: CatalogStep, redactor: Redactor): string {
  const [only, ...others] = invocations;
  const typed = others.length === 0 ? only?.command : null;
  return redactor.command(typed ?? command.join(' ')).replaceAll('`', "'");
}
