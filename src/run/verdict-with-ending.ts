import type { CommandEnding } from '../store/command-ending.js';
import { endingWords, killingSignal } from './ending-words.js';
import type { VerdictEvidence, VerdictWithReason } from './verdict.js';

/** What is known of the command that an invocation was part of. */
export interface EndedCommand {
  readonly ending: CommandEnding;
  /** Whether the invocation was all that the command did, as far as telemetry tells: then its exit code speaks of it. */
  readonly isSole: boolean;
}

const TELLER_GONE = 'No end was seen: whoever ran the command went away without a word on how it ended';
/** Signals by which people and systems stop a command; any other is a fault. */
const STOP_SIGNALS: ReadonlySet<string> = new Set(['SIGINT', 'SIGTERM', 'SIGHUP']);

/**
 * A verdict by the telemetry alone, revised by how the command ended. What the telemetry knows for certain stays: a failed
 * node is an error whatever the exit code, an interrupted command is canceled. Where its end is missing, the command's tells.
 */
export function withEnding(
  told: VerdictWithReason,
  evidence: Pick<VerdictEvidence, 'hasInvocationEnd' | 'hasProcessEnd' | 'nodeCounts'>,
  { ending, isSole }: EndedCommand,
): VerdictWithReason {
  const command = `The command ${endingWords(ending)}`;
  if (ending.kind === 'unknown') {
    return told.verdict === 'lost' ? { ...told, statusMessage: TELLER_GONE } : told;
  }
  if (ending.kind === 'within' || (ending.kind === 'exited' && ending.exitCode === 0)) {
    return told.verdict === 'lost' ? endedWithoutProof(told, evidence, command) : told;
  }
  const signal = killingSignal(ending);
  const verdict = signal !== null && STOP_SIGNALS.has(signal) ? 'canceled' : 'error';
  if (told.verdict === 'lost') return { verdict, statusMessage: `${command}; ${atWork(evidence)}` };
  if (told.verdict === 'success' && isSole) {
    const reason = evidence.hasInvocationEnd
      ? 'its telemetry tells of no failure'
      : lowerFirst(told.statusMessage ?? '');
    return { verdict, statusMessage: `${command}, though ${reason}` };
  }
  if (signal === null || evidence.hasInvocationEnd) return told;
  return { ...told, statusMessage: `${told.statusMessage ?? ''}; the command ${endingWords(ending)}` };
}

/**
 * The telemetry has no end, the command has a good one. That is no success: the exit code may be that of a shell, which
 * says nothing of an engine that was killed (`dbt build | tee log`, `dbt build || true`).
 */
function endedWithoutProof(
  { statusMessage }: VerdictWithReason,
  { nodeCounts }: Pick<VerdictEvidence, 'nodeCounts'>,
  command: string,
): VerdictWithReason {
  const failedCount = nodeCounts.failed + nodeCounts.error;
  if (failedCount === 0) {
    const unfinished = atWork({ nodeCounts });
    return { verdict: 'lost', statusMessage: `${statusMessage ?? ''}; ${unfinished}; ${lowerFirst(command)}` };
  }
  const nodes = failedCount === 1 ? '1 node' : `${failedCount} nodes`;
  const rest = 'the end of its telemetry was not seen';
  return { verdict: 'error', statusMessage: `${nodes} failed; ${lowerFirst(command)}, ${rest}` };
}

function atWork({ nodeCounts: { unfinished } }: Pick<VerdictEvidence, 'nodeCounts'>): string {
  if (unfinished === 0) return 'no node was at work';
  return unfinished === 1 ? '1 node had not ended' : `${unfinished} nodes had not ended`;
}

function lowerFirst(text: string): string {
  return `${text.charAt(0).toLowerCase()}${text.slice(1)}`;
}
