import type { KnownVerdict } from '../../run/run-summary.js';
import type { CatalogRun } from '../../storage/run-catalog.js';
import { isFinal, RUN_STATUS } from '../../storage/run-status.js';
import { countText } from './count-text.js';
import { lengthText } from './length-text.js';
import { runLengthMs } from './run-length.js';
import type { RunPageModel } from './run-page-model.js';

/** In the order in which people want to know it. */
const WORDS: readonly (readonly [verdict: KnownVerdict, one: string, many: string])[] = [
  ['error', 'error', 'errors'],
  ['failed', 'failed test', 'failed tests'],
  ['canceled', 'interrupted', 'interrupted'],
  ['skipped', 'skipped', 'skipped'],
  ['unfinished', 'unfinished', 'unfinished'],
  ['warned', 'warned', 'warned'],
  ['success', 'succeeded', 'succeeded'],
];

/** How a run ended, why, and what became of its nodes. */
export function RunVerdict(props: {
  readonly run: CatalogRun;
  readonly sight: RunPageModel;
  readonly nowUnixMs: number;
}) {
  const { run, sight, nowUnixMs } = props;
  const lengthMs = runLengthMs(run, nowUnixMs);
  const after = lengthMs === null ? '' : ` after ${lengthText(lengthMs)}`;
  const counted = countedWords(sight);
  return (
    <section class={`verdict ${moodOf(run)}`} aria-label="How it ended">
      <p class="strong">{sentenceOf(run, after)}</p>
      {sight.statusMessage !== null && <p class="text">{sight.statusMessage}</p>}
      {counted.length > 0 && (
        <p>
          {countText(
            counted.reduce((sum, [count]) => sum + count, 0),
            'node',
          )}
          {': '}
          {counted.map(([count, one, many]) => countText(count, one, many)).join(', ')}
        </p>
      )}
      {!sight.hasTelemetry && isFinal(run.status) && (
        <p>Nothing is kept of its telemetry: it sent none, or what was kept was removed.</p>
      )}
    </section>
  );
}

/** Counts of nodes with their words, in the order in which people want to know them; an outcome of a newer engine in its own word. */
function countedWords({ counts, noOpCount }: RunPageModel) {
  const known: readonly string[] = WORDS.map(([verdict]) => verdict);
  const words = [
    ...WORDS.map(
      ([verdict, one, many]) => [counts[verdict] - (verdict === 'skipped' ? noOpCount : 0), one, many] as const,
    ),
    [noOpCount, 'no-op', 'no-ops'] as const,
    ...Object.entries(counts)
      .filter(([word]) => !known.includes(word))
      .map(([word, count]) => [count, word, word] as const),
  ];
  return words.filter(([count]) => count > 0);
}

function sentenceOf({ status }: CatalogRun, after: string): string {
  switch (status) {
    case RUN_STATUS.queued:
      return 'Waits for its turn.';
    case RUN_STATUS.starting:
      return 'Is starting; no telemetry has come yet.';
    case RUN_STATUS.running:
      return `Running${after.replace('after', 'for')}. This page follows it.`;
    case RUN_STATUS.success:
      return `Succeeded${after}.`;
    case RUN_STATUS.error:
      return `Failed${after}.`;
    case RUN_STATUS.cancelled:
      return `Was cancelled${after}.`;
  }
}

function moodOf({ status }: CatalogRun): string {
  if (status === RUN_STATUS.error) return 'bad';
  if (status === RUN_STATUS.success) return 'good';
  return isFinal(status) ? 'neutral' : 'busy';
}
