import type { Request } from 'express';
import type { Child } from 'hono/jsx';
import { lengthText } from '../../core/text.js';
import { RUN_WORDS } from '../../run/words.js';
import type { CatalogRun } from '../../storage/run-catalog.js';
import type { RunStatus } from '../../storage/state-tables.js';

/** A name and a value in a description list. @param isName whether the value may be a long name, which may break anywhere */
export function Fact(props: { readonly name: string; readonly isName?: boolean; readonly children?: Child }) {
  const { name, isName = false, children } = props;
  return (
    <div>
      <dt>{name}</dt>
      <dd {...(isName && { class: 'name' })}>{children}</dd>
    </div>
  );
}

/** The color of a status word, and a symbol for readers who do not distinguish colors. */
export type Mood = 'good' | 'bad' | 'busy' | 'neutral';

const SIGNS: Readonly<Record<Mood, string>> = { good: '✓', bad: '✗', busy: '●', neutral: '–' };

/** A status word with its color and symbol. */
export function Mark({ word, mood }: { readonly word: string; readonly mood: Mood }) {
  return (
    <span class={`mark ${mood}`}>
      <span aria-hidden="true">{SIGNS[mood]}</span> {word}
    </span>
  );
}

/** A time in UTC, to the second; a script converts it to local time. @param isRelative whether the script shows how long ago it was instead */
export function Moment({ unixMs, isRelative = false }: { readonly unixMs: number; readonly isRelative?: boolean }) {
  const exact = new Date(unixMs).toISOString();
  return (
    <time datetime={exact} {...(isRelative && { 'data-relative': '' })}>
      {exact.replace('T', ' ').replace(/\.\d+Z$/, ' UTC')}
    </time>
  );
}

/** The heading of a column; numbers are aligned to the right. */
export type Column = string | { readonly number: string };

/**
 * A table with headings, which scrolls by itself if it is too wide.
 * @param props.label what it shows
 * @param props.isCards whether each row becomes a card in a narrow window, with cells of the class `wide` on separate lines
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

/** Shows a number in a table; on a card, which has no headings, behind its word. */
export function NumberCell({ word, children }: { readonly word: string; readonly children?: Child }) {
  return (
    <td class="number nowrap">
      <span class="on-card">{word} </span>
      {children}
    </td>
  );
}

/** Formats a number with its noun: `1 error`, `1,200 errors`. @param plural default: with an s */
export function countText(count: number, noun: string, plural = `${noun}s`): string {
  return `${count.toLocaleString('en')} ${count === 1 ? noun : plural}`;
}

/** What a pager shows. */
export interface PagerProps {
  /** The current page, from 1. */
  readonly page: number;
  readonly pageSize: number;
  readonly totalCount: number;
  /** The noun for an item, in the singular. */
  readonly noun: string;
  /** Returns the URL of a page. */
  readonly href: (page: number) => string;
  /** The words for the previous and the next page. */
  readonly words?: readonly [before: string, after: string];
}

/** Shows the number of items, and links to the previous and the next page. */
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

/** Returns the requested page of a list, from 1; the first if it is missing or invalid. */
export function pageNumber({ query }: Pick<Request, 'query'>): number {
  const { page } = query;
  return typeof page === 'string' && /^[1-9]\d{0,6}$/.test(page) ? Number(page) : 1;
}

const MOODS: Readonly<Record<RunStatus, Mood>> = {
  1: 'neutral',
  2: 'busy',
  3: 'busy',
  10: 'good',
  20: 'bad',
  30: 'neutral',
};

/** Shows the status of a run or step. */
export function RunMark({ status }: { readonly status: RunStatus }) {
  return <Mark word={RUN_WORDS[status]} mood={MOODS[status]} />;
}

/** The duration of a run, or the time since its start, in milliseconds; `null` while it is queued. */
export function runLengthMs(
  { startedUnixMs, dequeuedUnixMs, finishedUnixMs }: CatalogRun,
  nowUnixMs: number,
): number | null {
  const fromUnixMs = startedUnixMs ?? dequeuedUnixMs;
  return fromUnixMs === null ? null : Math.max(0, (finishedUnixMs ?? nowUnixMs) - fromUnixMs);
}

/** Returns what a run was started by and with: `Started on the pages, main@3f2c1d9`; empty where nothing is known. */
export function originText({ reason, gitBranch, gitSha }: CatalogRun): string {
  const code = [gitBranch, gitSha?.slice(0, 7)].filter((part) => part != null && part !== '').join('@');
  return [reason, code].filter((part) => part !== null && part !== '').join(', ');
}

/** Sizes of the charts of a history: in a list of runs, in a list of jobs, and on a job's page. Bars of the first are too small to be links. */
const HISTORY_SIZES = {
  tiny: { height: 16, step: 4 },
  small: { height: 24, step: 8 },
  large: { height: 96, step: 24 },
} as const;

/**
 * Shows runs of a job as bars, oldest first: their height is the duration, their color the outcome; each links to its run.
 * @param props.runs newest first
 */
export function RunHistory(props: {
  readonly runs: readonly CatalogRun[];
  readonly nowUnixMs: number;
  readonly size: keyof typeof HISTORY_SIZES;
}) {
  const { runs, nowUnixMs, size } = props;
  const bars = runs.toReversed().map((run) => {
    const lengthMs = runLengthMs(run, nowUnixMs) ?? 0;
    const text = `#${run.id}: ${RUN_WORDS[run.status]}, ${lengthText(lengthMs)}`;
    return { href: `/runs/${run.id}`, text, mood: MOODS[run.status], lengthMs };
  });
  return (
    <HistoryBars
      bars={bars}
      size={size}
      label={`Durations of ${countText(runs.length, 'run')} of the job, oldest first`}
    />
  );
}

/** Shows bars, as high as they took time. @param props.label what they are; how long the longest is, is added */
export function HistoryBars(props: {
  readonly bars: readonly {
    readonly href: string;
    /** Which one, how it ended and how long it took. */
    readonly text: string;
    readonly mood: Mood;
    readonly lengthMs: number;
  }[];
  readonly size: keyof typeof HISTORY_SIZES;
  readonly label: string;
}) {
  const { bars, size, label } = props;
  const { height, step } = HISTORY_SIZES[size];
  const longestMs = Math.max(1, ...bars.map(({ lengthMs }) => lengthMs));
  return (
    <svg
      class="history"
      width={Math.max(1, bars.length) * step}
      height={height}
      aria-label={`${label}, up to ${lengthText(longestMs)}`}
      {...(size === 'tiny' && { role: 'img' })}
    >
      {bars.map(({ href, text, mood, lengthMs }, index) => {
        const high = Math.max(2, (lengthMs / longestMs) * height);
        const bar = <rect class={mood} x={index * step} y={height - high} width={step * 0.75} height={high} />;
        if (size === 'tiny') return bar;
        return (
          <a href={href} aria-label={text}>
            <title>{text}</title>
            {bar}
          </a>
        );
      })}
    </svg>
  );
}

/** A button that sends a form. @param props.of the object of the action, for users of screen readers */
export function PostButton({
  action,
  text,
  of,
}: {
  readonly action: string;
  readonly text: string;
  readonly of: string;
}) {
  return (
    <form method="post" action={action}>
      <button type="submit" aria-label={`${text} ${of}`}>
        {text}
      </button>
    </form>
  );
}
