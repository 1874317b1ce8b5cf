import { createReadStream } from 'node:fs';
import { mkdtemp, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { type Request, type Response, Router } from 'express';
import { ApiError } from '../api/api-error.js';
import { authorize, callerOf } from '../api/authenticator.js';
import type { Caller } from '../api/caller.js';
import { goneOf } from '../api/permissions.js';
import { cut } from '../core/text.js';
import { Layout, sendPage } from '../web/page/layout.js';
import { countText, ScrollTable } from '../web/page/parts.js';
import { answerQuery, MAX_API_ROWS, type QueryRouterDeps } from './routes.js';
import { type Cell, cellText, csvRows, isNumeric } from './rows.js';
import { VIEW_NAMES } from './views.js';

/** Dependencies of the page. */
export interface QueryPageDeps extends QueryRouterDeps {
  /** Returns the absolute path of an empty folder for answers that are being downloaded. */
  readonly answersFolder: () => Promise<string>;
  /** The program's version. */
  readonly version: string;
}

/** The most rows on a page. */
const PAGE_ROWS = 500;
/** The longest cell on a page, in characters. */
const MAX_CELL_CHARS = 1_000;
/** The longest SQL in characters; it is part of the page's URL, which servers and proxies limit. */
const MAX_SQL_CHARS = 8_000;

type Answer = Awaited<ReturnType<typeof answerQuery>>;

/** Serves `/query`, which runs SQL over the account's runs and shows the answer as a table and, if suitable, a chart; and `/query.csv` and `/query.parquet` for downloads. */
export function queryPages(deps: QueryPageDeps): Router {
  const router = Router();
  router.get('/query', authorize('query'), async (request, response) => {
    const sql = sqlIn(request);
    const page = { caller: callerOf(response), sql, version: deps.version };
    if (sql === '') {
      await sendPage(response, <QueryPage {...page} answer={null} problem={null} />);
      return;
    }
    try {
      const answer = await ask(sql, PAGE_ROWS, response);
      await sendPage(response, <QueryPage {...page} answer={answer} problem={null} />);
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      response.set(error.headers);
      await sendPage(response, <QueryPage {...page} answer={null} problem={error.userMessage} />, error.status);
    }
  });
  router.get('/query.csv', authorize('query'), async (request, response) => {
    const { columns, rows } = await ask(sqlIn(request), MAX_API_ROWS, response);
    const writer = csvRows();
    response.attachment('query.csv').set({ 'Content-Type': 'text/csv; charset=utf-8', 'Cache-Control': 'no-store' });
    response.send(writer.columns(columns) + writer.rows(rows) + writer.end());
  });
  router.get('/query.parquet', authorize('query'), async (request, response) => {
    const folder = await mkdtemp(join(await deps.answersFolder(), 'query-'));
    try {
      const path = join(folder, 'query.parquet');
      await ask(sqlIn(request), MAX_API_ROWS, response, path);
      const { size } = await stat(path);
      response.attachment('query.parquet').set({
        'Content-Type': 'application/vnd.apache.parquet',
        'Content-Length': String(size),
        'Cache-Control': 'no-store',
      });
      // If sending fails, the connection is closed; the client notices by the length.
      await pipeline(createReadStream(path), response).catch(() => response.destroy());
    } finally {
      await rm(folder, { recursive: true, force: true });
    }
  });
  return router;

  function ask(sql: string, limit: number, response: Response, parquetPath: string | null = null): Promise<Answer> {
    if (sql.length > MAX_SQL_CHARS) {
      const limitText = MAX_SQL_CHARS.toLocaleString('en');
      throw new ApiError(400, `The SQL is longer than ${limitText} characters; send it over the API.`);
    }
    return answerQuery(callerOf(response).accountId, { sql, limit, parquetPath }, deps, goneOf(response));
  }
}

function sqlIn({ query }: Pick<Request, 'query'>): string {
  return typeof query.sql === 'string' ? query.sql.trim() : '';
}

/** Common questions, with the SQL that answers them. */
export const EXAMPLES: readonly (readonly [question: string, sql: string])[] = [
  [
    'Which jobs fail?',
    `SELECT job, count(*) FILTER (status = 'error') AS failed, count(*) AS runs, round(avg(length_ms) / 1000, 1) AS avg_s
FROM runs GROUP BY job ORDER BY failed DESC`,
  ],
  [
    'What is slow?',
    `SELECT name, round(avg(duration_ms)) AS avg_ms, count(*) AS times
FROM nodes WHERE duration_ms > 0 GROUP BY name ORDER BY avg_ms DESC LIMIT 20`,
  ],
  [
    'What got slower?',
    `SELECT name, run_id, duration_ms, median(duration_ms) OVER (PARTITION BY unique_id) AS usual_ms
FROM nodes WHERE node_type = 'model' QUALIFY duration_ms > 2 * usual_ms ORDER BY duration_ms - usual_ms DESC LIMIT 20`,
  ],
  [
    'What fails most often?',
    `SELECT name, count(*) AS failures, max(run_id) AS last_run, any_value(message) AS message
FROM nodes WHERE outcome = 'error' GROUP BY name ORDER BY failures DESC LIMIT 20`,
  ],
  [
    'Which tests are flaky?',
    `SELECT name, count(*) FILTER (result = 'failed') AS failed, count(*) AS runs
FROM tests GROUP BY name HAVING failed BETWEEN 1 AND runs - 1 ORDER BY failed DESC`,
  ],
  [
    'What keeps the warehouse busy?',
    `SELECT unique_id, round(sum(duration_ms) / 1000, 1) AS seconds, count(*) AS queries
FROM queries GROUP BY unique_id ORDER BY seconds DESC LIMIT 20`,
  ],
];

interface QueryPageProps {
  readonly caller: Caller;
  readonly sql: string;
  /** The answer; `null` without a query, or if it failed. */
  readonly answer: Answer | null;
  /** Why the query failed. */
  readonly problem: string | null;
  readonly version: string;
}

function QueryPage({ caller, sql, answer, problem, version }: QueryPageProps) {
  return (
    <Layout title="Query" caller={caller} version={version}>
      <h1>Query</h1>
      <form class="settings wide" method="get" action="/query">
        <label>
          SQL (DuckDB, read only) over {VIEW_NAMES.join(', ')}
          <textarea name="sql" rows={6} spellcheck={false} required maxlength={MAX_SQL_CHARS} class="code">
            {sql}
          </textarea>
        </label>
        <p class="buttons">
          <button type="submit">Run</button>
          {answer !== null && (
            <>
              <a class="button" href={`/query.csv?${new URLSearchParams({ sql })}`} download>
                Download CSV
              </a>
              <a class="button" href={`/query.parquet?${new URLSearchParams({ sql })}`} download>
                Download Parquet
              </a>
            </>
          )}
        </p>
      </form>
      {problem !== null && <Problem text={problem} />}
      {answer !== null && <AnswerPart answer={answer} />}
      <Examples />
    </Layout>
  );
}

/** Shows an error with its location, below which DuckDB puts a caret. */
function Problem({ text }: { readonly text: string }) {
  const at = text.search(/^LINE \d+:/m);
  const [message, location] = at < 0 ? [text, ''] : [text.slice(0, at), text.slice(at)];
  return (
    <div class="notice bad" role="alert">
      <span class="text">{message.trim()}</span>
      {location !== '' && (
        <pre class="place" tabindex={0}>
          {location}
        </pre>
      )}
    </div>
  );
}

function Examples() {
  return (
    <section aria-label="Examples">
      <h2>Examples</h2>
      <ul>
        {EXAMPLES.map(([question, sql]) => (
          <li>
            <a href={linkTo(sql)}>{question}</a>
          </li>
        ))}
        {VIEW_NAMES.map((name) => (
          <li>
            <a href={linkTo(`DESCRIBE ${name}`)}>
              Columns of <code>{name}</code>
            </a>
          </li>
        ))}
      </ul>
    </section>
  );
}

function linkTo(sql: string): string {
  return `/query?${new URLSearchParams({ sql })}`;
}

function AnswerPart({ answer }: { readonly answer: Answer }) {
  const { columns, rows, is_truncated: isTruncated, left_out_run_count: leftOutCount } = answer;
  if (rows.length === 0) return <p class="empty">No rows.</p>;
  const numeric = columns.map(isNumeric);
  return (
    <section aria-label="Answer">
      <h2>
        {countText(rows.length, 'row')}
        {isTruncated && '; there are more: narrow the query, or download it'}
      </h2>
      {leftOutCount > 0 && <p>{countText(leftOutCount, 'older run')} beyond the 20,000 latest were not asked.</p>}
      <Chart columns={columns.map(({ name }) => name)} rows={rows} numeric={numeric} />
      <ScrollTable
        label="Rows"
        columns={columns.map(({ name }, index) => (numeric[index] === true ? { number: name } : name))}
      >
        {rows.map((row) => (
          <tr>
            {row.map((cell, index) => (
              <td class={numeric[index] === true ? 'number' : 'text'}>
                {isNaming(columns[index]?.name) ? cellText(cell) : shown(cell, numeric[index])}
              </td>
            ))}
          </tr>
        ))}
      </ScrollTable>
    </section>
  );
}

/** Last words of column names whose numbers identify something or are times. */
const NAMING = new Set(
  'id ids key hash number no nr code index idx ordinal position rank version port pid line column run step account job project environment user trace span event thread worker partition status severity unix'.split(
    ' ',
  ),
);
/** Names of columns with a part of a date. */
const DATE_PART =
  /^(?:(?:iso|calendar|fiscal|start(?:ed)?|end(?:ed)?)_?)?(?:year|quarter|month|week|day|dow|doy|hour|epoch)$/;
const OF_A_DATE = /^(?:epoch_\w+|yearweek|weekday|day_?of_?(?:week|month|year)|isodow|julian)$/;

/** Whether a column's numbers identify something, like ids, or are times: they are shown without thousands separators, and no chart shows them. An expression is judged by the names in it. */
function isNaming(column = ''): boolean {
  if (!column.includes('(')) return isNamingName(column);
  return !/^(?:approx_)?count\w*\(/i.test(column) && (column.match(/\w+/g) ?? []).some(isNamingName);
}

function isNamingName(name: string): boolean {
  const words = name
    .replaceAll(/(?<=[\p{Ll}\d])(?=\p{Lu})/gu, '_')
    .toLowerCase()
    .split(/[^\p{L}\p{N}]+/u);
  const whole = words.join('_');
  // `failures_per_run` is an amount; `start_time_unix_nano` is a time.
  if (/_(?:per|a|an|each)_\w+$/.test(whole)) return false;
  return (
    NAMING.has(words.at(-1) ?? '') || /(?:^|_)unix_\w+$/.test(whole) || DATE_PART.test(whole) || OF_A_DATE.test(whole)
  );
}

/** The number of digits that a double represents exactly. */
const EXACT_DIGITS = 15;

/** Formats a cell: numbers as on all pages, long texts cut. */
function shown(cell: Cell, isNumber = false): string {
  if (isNumber && typeof cell === 'string' && cell.length < EXACT_DIGITS) return shown(Number(cell));
  if (typeof cell === 'number') return cell.toLocaleString('en', { maximumFractionDigits: 3 });
  const text = cellText(cell);
  return cut(text, MAX_CELL_CHARS);
}

/** The most bars in a chart. */
const MAX_BARS = 40;
const BAR = { labelWidth: 240, width: 640, height: 18, gap: 4, valueWidth: 90 } as const;

/** Shows bars for the first column of amounts if none is negative, labelled by the first column without numbers; shows nothing without such columns. */
function Chart(props: {
  readonly columns: readonly string[];
  readonly rows: readonly (readonly Cell[])[];
  readonly numeric: readonly boolean[];
}) {
  const { columns, rows, numeric } = props;
  const label = numeric.indexOf(false);
  const value = columns.findIndex((column, index) => numeric[index] === true && !isNaming(column));
  const bars = rows.map((row) => ({ name: cellText(row[label] ?? null), value: Number(row[value] ?? 0) }));
  const largest = Math.max(...bars.map((bar) => bar.value));
  const isChart = label !== -1 && value !== -1 && rows.length > 1 && rows.length <= MAX_BARS;
  if (!isChart || largest <= 0 || bars.some((bar) => bar.value < 0)) return null;
  const height = bars.length * (BAR.height + BAR.gap);
  const width = BAR.labelWidth + BAR.width + BAR.valueWidth;
  return (
    <figure class="scroll" tabindex={0}>
      <figcaption class="hint">
        {columns[value]} by {columns[label]}
      </figcaption>
      <svg class="bars" width={width} height={height} role="img" aria-label={`Chart of ${columns[value]}`}>
        {bars.map((bar, index) => {
          const y = index * (BAR.height + BAR.gap);
          const length = Math.max(1, (bar.value / largest) * BAR.width);
          return (
            <g>
              <title>{`${bar.name}: ${shown(bar.value)}`}</title>
              <text x={BAR.labelWidth - 8} y={y + BAR.height - 5} text-anchor="end">
                {cut(bar.name, MAX_LABEL_CHARS)}
              </text>
              <rect x={BAR.labelWidth} y={y} width={length} height={BAR.height} />
              <text x={BAR.labelWidth + length + 6} y={y + BAR.height - 5}>
                {shown(bar.value)}
              </text>
            </g>
          );
        })}
      </svg>
    </figure>
  );
}

/** The longest label of a bar, in characters. */
const MAX_LABEL_CHARS = 30;
