import { cut, lengthText } from '../../core/text.js';
import type { CriticalPath, PathLink } from '../../run/measures/critical-path.js';
import {
  type Concurrency,
  lengthOfParts,
  longestParts,
  PATH_WORDS,
  type Pace,
  paceWords,
  percentText,
  shownParts,
  stepLabel,
  timeSentence,
} from '../../run/measures/pace.js';
import type { TimePart, TimeParts } from '../../run/measures/time-split.js';
import { phaseWords } from '../../run/words.js';
import { Fact, NumberCell, ScrollTable } from './parts.js';

// Where the time of a run went: a bar with a sentence, what runs are compared by, and the critical path. Reports in HTML have them too.

/** The CSS classes of the parts of a run's time. */
const PART_CLASSES: Readonly<Record<TimePart, string>> = {
  parseNano: 'parse',
  compileNano: 'compile',
  runNano: 'run',
  warehouseNano: 'warehouse',
  threadsNano: 'threads',
  restNano: 'rest',
};
const BAR_WIDTH = 1_000;
/** The longest name, in characters. */
const MAX_NAME = 300;

/** Shows where the time went as a bar and a sentence; nothing if none has passed. */
export function TimeBar({ parts }: { readonly parts: TimeParts }) {
  const lengthNano = lengthOfParts(parts);
  if (lengthNano === 0n) return null;
  let at = 0;
  return (
    <>
      <svg
        class="parts"
        viewBox={`0 0 ${BAR_WIDTH} 12`}
        preserveAspectRatio="none"
        role="img"
        aria-label={timeSentence(parts)}
      >
        {shownParts(parts).map(([part]) => {
          const width = (Number(parts[part]) / Number(lengthNano)) * BAR_WIDTH;
          const x = at;
          at += width;
          return <rect class={PART_CLASSES[part]} x={x.toFixed(1)} width={width.toFixed(1)} height="12" />;
        })}
      </svg>
      <p class="parts">
        {longestParts(parts).map(([part, words]) => (
          <span title={lengthText(Number(parts[part]) / 1e6)}>
            <svg class="parts" viewBox="0 0 10 10" aria-hidden="true">
              <rect class={PART_CLASSES[part]} width="10" height="10" />
            </svg>{' '}
            {percentText(parts[part], lengthNano)} {words}
          </span>
        ))}
      </p>
    </>
  );
}

/** Shows what engineers compare runs by. */
export function PaceFacts({ pace }: { readonly pace: Pace }) {
  const words = [['wall clock', lengthText(pace.lengthMs)] as const, ...paceWords(pace)];
  return (
    <dl class="facts">
      {words.map(([name, value]) => (
        <Fact isName name={`${name.slice(0, 1).toUpperCase()}${name.slice(1)}`}>
          {cut(value, MAX_NAME)}
        </Fact>
      ))}
    </dl>
  );
}

const CHART_HEIGHT = 60;

/** Draws how many nodes were worked on, and above them how many waited, over the time of a command. */
export function ConcurrencyChart({ concurrency }: { readonly concurrency: Concurrency }) {
  const { running, queued, peak } = concurrency;
  const sums = running.map((count, at) => count + (queued[at] ?? 0));
  const most = Math.max(1, ...sums);
  const y = (count: number) => (CHART_HEIGHT * (1 - count / most)).toFixed(1);
  // A step for each part of the time, from the left to the right and back along the axis.
  const area = (counts: readonly number[]) =>
    `M0 ${CHART_HEIGHT} ${counts.map((count, at) => `L${at} ${y(count)}H${at + 1}`).join('')}V${CHART_HEIGHT}Z`;
  const mostQueued = Math.round(Math.max(0, ...queued));
  const label = `Nodes at a time: at most ${peak.toLocaleString('en')} at work, ${mostQueued.toLocaleString('en')} waiting for a thread or a connection`;
  return (
    <figure>
      <svg
        class="concurrency"
        viewBox={`0 0 ${running.length} ${CHART_HEIGHT}`}
        preserveAspectRatio="none"
        role="img"
        aria-label={label}
      >
        <path class="queued" d={area(sums)} />
        <path class="running" d={area(running)} />
      </svg>
      <figcaption class="hint">{label}.</figcaption>
    </figure>
  );
}

/** Shows the steps of a critical path that took longest, in their order, with their shares of the length; nothing if it has none. */
export function CriticalPathTable(props: {
  readonly path: CriticalPath;
  readonly lengthNano: bigint;
  readonly limit: number;
  /** The id of its heading, where a page has several. */
  readonly id?: string;
}) {
  const { path, lengthNano, limit, id = 'critical-path' } = props;
  const { links, tailNano, follows } = path;
  if (links.length === 0) return null;
  const longest = new Set([...links].sort((a, b) => (wholeOf(b) > wholeOf(a) ? 1 : -1)).slice(0, limit));
  const others = links.filter((link) => !longest.has(link));
  const text = (nano: bigint) => lengthText(Number(nano) / 1e6);
  const row = (name: string, phase: string, waitNano: bigint, timeNano: bigint) => (
    <tr>
      <th scope="row" class="name wide">
        {cut(name, MAX_NAME)}
      </th>
      <td>{phase}</td>
      <NumberCell word="wait">{text(waitNano)}</NumberCell>
      <NumberCell word="time">{text(timeNano)}</NumberCell>
      <NumberCell word="share">{percentText(waitNano + timeNano, lengthNano)}</NumberCell>
    </tr>
  );
  return (
    <section aria-labelledby={id}>
      <h2 id={id}>Critical path</h2>
      <ScrollTable
        label="Critical path, from the first step to the last"
        columns={['Step', 'Phase', { number: 'Wait' }, { number: 'Time' }, { number: 'Share' }]}
        isCards
      >
        {links
          .filter((link) => longest.has(link))
          .map(({ step, waitNano, timeNano }) =>
            row(stepLabel(step), step.uniqueId === null ? '' : phaseWords(step.phase), waitNano, timeNano),
          )}
        {others.length > 0 &&
          row(`${others.length} shorter steps`, '', sumOf(others, 'waitNano'), sumOf(others, 'timeNano'))}
        {row('end of the command', '', 0n, tailNano)}
      </ScrollTable>
      <p class="hint">
        Found {PATH_WORDS[follows]}
        {follows === 'times' && '; with the artifact manifest.json, by what nodes depend on'}.
      </p>
    </section>
  );
}

function wholeOf({ waitNano, timeNano }: PathLink): bigint {
  return waitNano + timeNano;
}

function sumOf(links: readonly PathLink[], of: 'waitNano' | 'timeNano'): bigint {
  return links.reduce((sum, link) => sum + link[of], 0n);
}
