import { countText } from './count-text.js';

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
