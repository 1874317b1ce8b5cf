import type { CommandMeasures } from '../../src/run/measures/run-totals.js';

/** The counts of the engine's own summary of a command, as it prints them; nodes and hooks together. */
export interface EngineSummary {
  readonly total: number;
  readonly success: number;
  readonly warn: number;
  readonly error: number;
  readonly skipped: number;
  readonly noOp: number;
}

/** Reads `Summary: 23 total | 15 success | 1 warn …` from what the engine printed; `undefined` where it printed none. */
export function engineSummary(output: string): EngineSummary | undefined {
  const line = /^Summary: (.*)$/m.exec(output)?.[1];
  if (line === undefined) return undefined;
  const of = (word: string) => Number(new RegExp(`(?:^|\\| )(\\d+) ${word}(?: |$)`).exec(line)?.[1] ?? 0);
  return {
    total: of('total'),
    success: of('success'),
    warn: of('warn'),
    error: of('error'),
    skipped: of('skipped'),
    noOp: of('no-op'),
  };
}

/** What is measured of a command, in the words of the engine's summary. */
export function summaryOf({ totals: { nodeCounts, noOpCount, hookCounts } }: CommandMeasures): EngineSummary {
  const { success, warned, failed, error, canceled, skipped, unfinished } = nodeCounts;
  const hooks = Object.values(hookCounts).reduce((sum, count) => sum + count, 0);
  return {
    total: success + warned + failed + error + canceled + skipped + unfinished + hooks,
    success: success + hookCounts.success,
    warn: warned,
    error: failed + error + hookCounts.error,
    skipped: skipped - noOpCount,
    noOp: noOpCount,
  };
}

/** The nodes of `run_results.json` by what they came to, sorted: each kind of bad end counts as `error`, a passing test as `success`. */
export function runResultNodes(json: string): Readonly<Record<string, string>> {
  const { results } = JSON.parse(json) as { results: readonly { unique_id: string; status: string }[] };
  const words: Readonly<Record<string, string>> = { pass: 'success', warn: 'warned', fail: 'error' };
  return Object.fromEntries(results.map(({ unique_id, status }) => [unique_id, words[status] ?? status]).sort());
}

/** The nodes that are measured of a command, in the same words. */
export function measuredNodes({ nodes }: CommandMeasures): Readonly<Record<string, string>> {
  return Object.fromEntries(
    nodes.map(({ uniqueId, verdict }) => [uniqueId, verdict === 'failed' ? 'error' : verdict]).sort(),
  );
}
