import type { RunStatus } from '../../storage/run-status.js';
import { Mark, type Mood } from './mark.js';

const WORDS: Readonly<Record<RunStatus, readonly [word: string, mood: Mood]>> = {
  1: ['queued', 'neutral'],
  2: ['starting', 'busy'],
  3: ['running', 'busy'],
  10: ['succeeded', 'good'],
  20: ['failed', 'bad'],
  30: ['cancelled', 'neutral'],
};

/** Where a run or a step stands. */
export function RunMark({ status }: { readonly status: RunStatus }) {
  const [word, mood] = WORDS[status];
  return <Mark word={word} mood={mood} />;
}
