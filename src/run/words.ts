import { RUN_STATUS, type RunStatus } from '../storage/state-tables.js';
import type { KnownVerdict, NodeCounts, Verdict } from './verdict.js';

// What outcomes are called where people read them: in commands, pages, messages, forms, JUnit and docs alike. JSON, settings and
// the hosted platform's documents have identifiers of their own, which do not change.

/** Words for the status of a run or a step. */
export const RUN_WORDS: Readonly<Record<RunStatus, string>> = {
  [RUN_STATUS.queued]: 'queued',
  [RUN_STATUS.starting]: 'starting',
  [RUN_STATUS.running]: 'running',
  [RUN_STATUS.success]: 'success',
  [RUN_STATUS.error]: 'failed',
  [RUN_STATUS.cancelled]: 'canceled',
};

/** Words for how an engine command ended. */
export const COMMAND_WORDS: Readonly<Record<Verdict, string>> = {
  success: 'success',
  error: 'failed',
  canceled: 'canceled',
  lost: 'lost',
};

/** Words for how nodes ended, in the singular and the plural; those that need somebody first. */
export const NODE_WORDS: Readonly<Record<KnownVerdict, readonly [one: string, many: string]>> = {
  error: ['error', 'errors'],
  failed: ['failed', 'failed'],
  canceled: ['canceled', 'canceled'],
  unfinished: ['unfinished', 'unfinished'],
  skipped: ['skipped', 'skipped'],
  warned: ['warned', 'warned'],
  success: ['success', 'success'],
};

/** The words for a skipped node for which there was nothing to do. */
export const NO_OP_WORDS = ['no-op', 'no-ops'] as const;

/** The word for how a node ended; for an outcome that this version does not know, the engine's own. */
export function nodeWord(verdict: string): string {
  return isKnown(verdict) ? NODE_WORDS[verdict][0] : verdict;
}

/** Counts of nodes with their words in the singular and the plural, of what there is. */
export function countedWords(
  counts: NodeCounts,
  noOpCount: number,
): readonly (readonly [count: number, one: string, many: string])[] {
  const own = Object.entries(counts).filter(([verdict]) => !isKnown(verdict));
  const words = [
    ...Object.entries(NODE_WORDS).map(
      ([verdict, words]) => [(counts[verdict] ?? 0) - (verdict === 'skipped' ? noOpCount : 0), ...words] as const,
    ),
    [noOpCount, ...NO_OP_WORDS] as const,
    ...own.map(([word, count]) => [count, word, word] as const),
  ];
  return words.filter(([count]) => count > 0);
}

/** The same in a line: `1 error, 2 failed, 1,129 success`; empty where there are none. */
export function countsText(counts: NodeCounts, noOpCount = 0): string {
  return countedWords(counts, noOpCount)
    .map(([count, one, many]) => `${count.toLocaleString('en')} ${count === 1 ? one : many}`)
    .join(', ');
}

/** A phase as people read it: `load project`. */
export function phaseWords(phase: string): string {
  return phase.toLowerCase().replaceAll('_', ' ');
}

function isKnown(verdict: string): verdict is KnownVerdict {
  return verdict in NODE_WORDS;
}
