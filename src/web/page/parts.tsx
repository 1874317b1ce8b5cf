import type { Request } from 'express';
import type { Child } from 'hono/jsx';
import { lengthText } from '../../core/text.js';
import type { CatalogRun } from '../../storage/run-catalog.js';
import type { RunStatus } from '../../storage/state-tables.js';

/** A name and a value in a description list. @param isName whether it may be a long name, which is broken anywhere */
export function Fact(props: { readonly name: string; readonly isName?: boolean; readonly children?: Child }) {
  const { name, isName = false, children } = props;
  return (
    <div>
      <dt>{name}</dt>
      <dd {...(isName && { class: 'name' })}>{children}</dd>
    </div>
  );
}

/** A status word: its color, and a symbol for readers who do not distinguish colors. */
export type Mood = 'good' | 'bad' | 'busy' | 'neutral';

const SIGNS: Readonly<Record<Mood, string>> = { good: '✓', bad: '✗', busy: '●', neutral: '–' };

/** A status in a word, with its color and sign. */
export function Mark({ word, mood }: { readonly word: string; readonly mood: Mood }) {
  return (
    <span class={`mark ${mood}`}>
      <span aria-hidden="true">{SIGNS[mood]}</span> {word}
    </span>
  );
}

/** A time in UTC, to the second; where a script runs it is local. @param isRelative whether it is then said how long ago it was */
export function Moment({ unixMs, isRelative = false }: { readonly unixMs: number; readonly isRelative?: boolean }) {
  const exact = new Date(unixMs).toISOString();
  return (
    <time datetime={exact} {...(isRelative && { 'data-relative': '' })}>
      {exact.replace('T', ' ').replace(/\.\d+Z$/, ' UTC')}
    </time>
  );
}

/** A column's heading; of numbers it stands at the right. */
export type Column = string | { readonly number: string };

/**
 * A table with headings, in a part of the page that scrolls by itself where it is too wide.
 * @param props.label what it shows
 * @param props.isCards whether a row becomes a card in a narrow window, with cells of the class `wide` in lines of their own
 */
export function ScrollTable(props: {
  readonly label: string;
  readonly columns: readonly Column[];
  readonly isCards?: boolean;
  /** Its rows. */
  readonly children?: Child;
}) {
  const { label, columns, isCards = false, children } = props;
  return (
    <section class={isCards ? 'scroll cards' : 'scroll'} tabindex={0} aria-label={label}>
      <table>
        <thead>
          <tr>{columns.map(heading)}</tr>
        </thead>
        <tbody>{children}</tbody>
      </table>
    </section>
  );
}

function heading(column: Column) {
  if (typeof column === 'string') return <th scope="col">{column}</th>;
  return (
    <th scope="col" class="number">
      {column.number}
    </th>
  );
}

/** A number and its noun: `1 error`, `1,200 errors`. @param plural default: with an s */
export function countText(count: number, noun: string, plural = `${noun}s`): string {
  return `${count.toLocaleString('en')} ${count === 1 ? noun : plural}`;
}

/** What a pager shows. */
export interface PagerProps {
  /** From 1. */
  readonly page: number;
  readonly pageSize: number;
  readonly totalCount: number;
  /** Of what, in the singular. */
  readonly noun: string;
  /** The address of a page. */
  readonly href: (page: number) => string;
  /** What the pages before and after are called. */
  readonly words?: readonly [before: string, after: string];
}

/** How many there are, and the way to the pages before and after. */
export function Pager({ page, pageSize, totalCount, noun, href, words = ['Newer', 'Older'] }: PagerProps) {
  const pageCount = Math.max(1, Math.ceil(totalCount / pageSize));
  return (
    <nav class="pager" aria-label="Pages">
      {page > 1 && (
        <a href={href(page - 1)} rel="prev">
          ← {words[0]}
        </a>
      )}
      <span>
        {countText(totalCount, noun)}, page {page} of {pageCount}
      </span>
      {page < pageCount && (
        <a href={href(page + 1)} rel="next">
          {words[1]} →
        </a>
      )}
    </nav>
  );
}

/** The requested page of a list, from 1; the first if it is missing or invalid. */
export function pageNumber({ query }: Pick<Request, 'query'>): number {
  const { page } = query;
  return typeof page === 'string' && /^[1-9]\d{0,6}$/.test(page) ? Number(page) : 1;
}

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

/** The duration of a run, or the time since its start, in milliseconds; `null` while it is queued. */
export function runLengthMs(
  { startedUnixMs, dequeuedUnixMs, finishedUnixMs }: CatalogRun,
  nowUnixMs: number,
): number | null {
  const fromUnixMs = startedUnixMs ?? dequeuedUnixMs;
  return fromUnixMs === null ? null : Math.max(0, (finishedUnixMs ?? nowUnixMs) - fromUnixMs);
}

/** The pictures of a history: in a list of runs, of jobs, and on a job's page. Bars of the first are too small to be links. */
const HISTORY_SIZES = {
  tiny: { height: 16, step: 4 },
  small: { height: 24, step: 8 },
  large: { height: 96, step: 24 },
} as const;

/**
 * Runs of a job as bars, oldest first: as high as they took long, coloured by how they ended; each leads to its run.
 * @param props.runs newest first
 */
export function RunHistory(props: {
  readonly runs: readonly CatalogRun[];
  readonly nowUnixMs: number;
  readonly size: keyof typeof HISTORY_SIZES;
}) {
  const { runs, nowUnixMs, size } = props;
  const { height, step } = HISTORY_SIZES[size];
  const bars = runs.toReversed().map((run) => ({ run, lengthMs: runLengthMs(run, nowUnixMs) ?? 0 }));
  const longestMs = Math.max(1, ...bars.map(({ lengthMs }) => lengthMs));
  const label = `Durations of ${countText(runs.length, 'run')} of the job, oldest first, up to ${lengthText(longestMs)}`;
  return (
    <svg
      class="history"
      width={Math.max(1, bars.length) * step}
      height={height}
      aria-label={label}
      {...(size === 'tiny' && { role: 'img' })}
    >
      {bars.map(({ run: { id, status }, lengthMs }, index) => {
        const [word, mood] = WORDS[status];
        const high = Math.max(2, (lengthMs / longestMs) * height);
        const bar = <rect class={mood} x={index * step} y={height - high} width={step * 0.75} height={high} />;
        if (size === 'tiny') return bar;
        return (
          <a href={`/runs/${id}`} aria-label={`#${id} ${word}`}>
            <title>{`#${id}: ${word}, ${lengthText(lengthMs)}`}</title>
            {bar}
          </a>
        );
      })}
    </svg>
  );
}
