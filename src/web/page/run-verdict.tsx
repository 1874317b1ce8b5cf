import type { NodeVerdict } from '../../run/run-summary.js';
import type { CatalogRun } from '../../store/run-catalog.js';
import { isFinal, RUN_STATUS } from '../../store/run-status.js';
import { countText } from './count-text.js';
import { lengthText } from './length-text.js';
import { runLengthMs } from './run-length.js';
import type { RunSight } from './run-sight.js';

/** In the order in which people want to know it. */
const WORDS: readonly (readonly [verdict: NodeVerdict, one: string, many: string])[] = [
  ['error', 'error', 'errors'],
  ['failed', 'failed test', 'failed tests'],
  ['canceled', 'interrupted', 'interrupted'],
  ['skipped', 'skipped', 'skipped'],
  ['unfinished', 'unfinished', 'unfinished'],
  ['warned', 'warned', 'warned'],
  ['success', 'succeeded', 'succeeded'],
];

/** How a run ended, why, and what became of its nodes. */
export function RunVerdict(props: { readonly run: CatalogRun; readonly sight: RunSight; readonly nowUnixMs: number }) {
  const { run, sight, nowUnixMs } = props;
  const lengthMs = runLengthMs(run, nowUnixMs);
  const after = lengthMs === null ? '' : ` after ${lengthText(lengthMs)}`;
  const counted = WORDS.filter(([verdict]) => sight.counts[verdict] > 0);
  return (
    <section class={`verdict ${moodOf(run)}`} aria-label="How it ended">
      <p class="strong">{sentenceOf(run, after)}</p>
      {sight.statusMessage !== null && <p class="text">{sight.statusMessage}</p>}
      {counted.length > 0 && (
        <p>
          {countText(
            counted.reduce((sum, [verdict]) => sum + sight.counts[verdict], 0),
            'node',
          )}
          {': '}
          {counted.map(([verdict, one, many]) => countText(sight.counts[verdict], one, many)).join(', ')}
        </p>
      )}
      {!sight.hasTelemetry && isFinal(run.status) && (
        <p>Nothing is kept of its telemetry: it sent none, or what was kept was removed.</p>
      )}
    </section>
  );
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
