import type { Child } from 'hono/jsx';
import type { FailingSince } from '../../api/failing-since.js';
import type { FailedSql } from '../../run/measures/failed-sql.js';
import type { CatalogRun } from '../../storage/run-catalog.js';
import { countText } from './parts.js';
import type { PageSection, PageTrouble, RunPageModel } from './run-page-model.js';

/** The most troubles of a kind that are open at first; further ones are shown by a click. */
const MAX_OPEN = 5;

/** Shows the troubles, and the command that runs the failed nodes again. Shows nothing if all is well. */
export function RunTroubles(props: { readonly model: RunPageModel; readonly run: Pick<CatalogRun, 'id'> }) {
  const { model, run } = props;
  const { sections, retryCommands, redactor } = model;
  if (sections.length === 0) return null;
  // A single trouble shows its command itself.
  const [first, ...others] = sections.flatMap(({ troubles }) => troubles);
  const above = retryCommands.filter((command) => others.length > 0 || command !== first?.command);
  return (
    <div class="troubles">
      {above.map((command) => (
        <Command command={redactor.command(command)} label="Run again what failed" />
      ))}
      {sections.map((section, index) => (
        <Section {...{ section, run }} index={index} />
      ))}
      {redactor.level !== 'off' && (
        <p class="hint">Literals are redacted: with the right to read artifacts they are shown.</p>
      )}
    </div>
  );
}

function Section(props: {
  readonly section: PageSection;
  readonly run: Pick<CatalogRun, 'id'>;
  readonly index: number;
}) {
  const { section, run, index } = props;
  const { title, severity, troubles, omittedCount } = section;
  const shown = (trouble: PageTrouble, at: number) => (
    <TroubleOfRun {...{ trouble, run, severity }} id={`trouble-${index}-${at}`} />
  );
  const folded = troubles.slice(MAX_OPEN);
  return (
    <section class={`section ${severity}`} aria-labelledby={`section-${index}`}>
      <h2 id={`section-${index}`}>{title}</h2>
      {troubles.slice(0, MAX_OPEN).map(shown)}
      {folded.length > 0 && (
        <details id={`more-${index}`}>
          <summary class="more">{countText(folded.length + omittedCount, 'more', 'more')}</summary>
          {folded.map((trouble, at) => shown(trouble, at + MAX_OPEN))}
          {omittedCount > 0 && (
            <p>
              and {omittedCount.toLocaleString('en')} more:{' '}
              <a href={`/runs/${run.id}/nodes?outcome=bad`}>all of them</a>
            </p>
          )}
        </details>
      )}
    </section>
  );
}

/** The longest unique id in a URL. */
const MAX_ID = 500;
const HALF_CHARACTER = /\p{Cs}/u;

/** Shows a node's name as a link to its details. */
export function NodeLink(props: { readonly runId: number; readonly uniqueId: string | null; readonly text: string }) {
  const { runId, uniqueId, text } = props;
  if (uniqueId === null || uniqueId.length > MAX_ID || HALF_CHARACTER.test(uniqueId)) return text;
  return (
    <a href={`/runs/${runId}/nodes?node=${encodeURIComponent(uniqueId)}`} title={uniqueId} class="quiet-link">
      {text}
    </a>
  );
}

const SIGNS = { error: '✗', warning: '!', note: '–' } as const;

/** Shows a trouble: what, where, since when, why, and what to do. */
export function TroubleOfRun(props: {
  readonly trouble: PageTrouble;
  readonly severity: PageSection['severity'];
  readonly run: Pick<CatalogRun, 'id'>;
  /** The id of the page's element. */
  readonly id: string;
  /** Whether the heading above already names the node. Default: false. */
  readonly isNamed?: boolean;
}) {
  const { trouble, severity, run, id, isNamed = false } = props;
  const { uniqueId, label, location, cause, message, failingRows, diffTable, sql, skipped, command, since } = trouble;
  const name = label ?? 'the run';
  const rows = failingRows !== null && <span class="count">{countText(failingRows, 'row')}</span>;
  return (
    <article class="trouble" id={id}>
      {!isNamed && label !== null && (
        <h3 class="name">
          <span aria-hidden="true">{SIGNS[severity]}</span> <NodeLink runId={run.id} uniqueId={uniqueId} text={label} />
          {rows}
        </h3>
      )}
      {(location !== null || since !== null || (isNamed && failingRows !== null)) && (
        <p class="place">
          {isNamed && rows}
          {location !== null && <code class="name">{location}</code>}
          {since !== null && <Since since={since} runId={run.id} />}
        </p>
      )}
      <Cause lines={cause} isExpected={severity === 'error' && failingRows === null} />
      {diffTable !== null && diffTable !== '' && <Code label={`Expected and actual rows of ${name}`}>{diffTable}</Code>}
      {sql !== null && <Sql sql={sql} name={name} id={`${id}-sql`} />}
      {message !== null && (
        <details id={`${id}-message`}>
          <summary>Whole message</summary>
          <Code kind="error" label={`Message of ${name}`}>
            {message}
          </Code>
        </details>
      )}
      {skipped.length > 0 && <Skipped labels={skipped} id={`${id}-skipped`} />}
      {command !== null && <Command command={command} label={`Run ${name} again`} />}
    </article>
  );
}

/** The most lines of a cause that are shown; a longer one is in the whole message. */
const MAX_CAUSE_LINES = 4;

/** @param props `isExpected`: whether a missing cause is worth saying; canceled and unfinished nodes have none */
function Cause({ lines, isExpected }: { readonly lines: readonly string[]; readonly isExpected: boolean }) {
  const [first, ...more] = lines.slice(0, MAX_CAUSE_LINES);
  if (first === undefined) return isExpected ? <p class="hint">It failed without a message.</p> : null;
  return (
    <>
      <p class="cause name">{first}</p>
      {more.map((line) => (
        <p class="name soft">{line}</p>
      ))}
    </>
  );
}

function Since({ since, runId }: { readonly since: FailingSince; readonly runId: number }) {
  const { firstRunId, count, lastGoodRunId, isAtLeast } = since;
  const good =
    lastGoodRunId === null ? null : (
      <>
        {' · last good '}
        <a href={`/runs/${lastGoodRunId}`}>#{lastGoodRunId}</a>
      </>
    );
  if (count === 1) {
    return isAtLeast || lastGoodRunId === null ? <span /> : <span>new in this run{good}</span>;
  }
  return (
    <span>
      failing {isAtLeast && 'at least '}since{' '}
      {firstRunId === runId ? `#${firstRunId}` : <a href={`/runs/${firstRunId}`}>#{firstRunId}</a>} (
      {countText(count, 'run')}){good}
    </span>
  );
}

/** The most labels of skipped nodes that are shown. */
const MAX_NAMED = 3;
const MAX_SKIPPED = 200;

function Skipped({ labels, id }: { readonly labels: readonly string[]; readonly id: string }) {
  const rest = labels.length - MAX_NAMED;
  const named = labels.slice(0, MAX_NAMED).join(', ');
  if (rest <= 0) return <p class="name soft">skipped because of it: {named}</p>;
  return (
    <details id={id}>
      <summary class="name soft">
        skipped because of it: {named} and {rest.toLocaleString('en')} more
      </summary>
      <ul>
        {labels.slice(MAX_NAMED, MAX_SKIPPED).map((label) => (
          <li class="name">{label}</li>
        ))}
        {labels.length > MAX_SKIPPED && <li>and {(labels.length - MAX_SKIPPED).toLocaleString('en')} more</li>}
      </ul>
    </details>
  );
}

/** A command to copy: the button needs a script; without one, a click selects the text. */
export function Command({ command, label }: { readonly command: string; readonly label: string }) {
  return (
    <div class="copy">
      <code class="name" title={label}>
        {command}
      </code>
      <button type="button" class="quiet" data-copy={command} aria-label={`Copy: ${label}`} hidden>
        Copy
      </button>
    </div>
  );
}

/** The lines around the one with the error that are shown at first. */
const CONTEXT = 3;

function Sql({ sql, name, id }: { readonly sql: FailedSql; readonly name: string; readonly id: string }) {
  const { kind, text, firstLine, errorLine } = sql;
  const lines = text.split('\n').map((content, at) => ({ content, line: firstLine + at }));
  const title = kind === 'compiled' ? 'Compiled SQL' : 'Statement';
  const near = errorLine === null ? [] : lines.filter(({ line }) => Math.abs(line - errorLine) <= CONTEXT);
  return (
    <>
      {near.length > 0 && <Lines lines={near} errorLine={errorLine} label={`${title} of ${name} round the error`} />}
      {near.length < lines.length && (
        <details id={id}>
          <summary>
            {title}, {countText(lines.length, 'line')}
          </summary>
          <Lines lines={lines} errorLine={errorLine} label={`${title} of ${name}`} />
        </details>
      )}
    </>
  );
}

interface CodeLine {
  readonly line: number;
  readonly content: string;
}

/** A text of a program, in an element that scrolls by itself. */
export function Code(props: { readonly label: string; readonly kind?: string; readonly children?: Child }) {
  const { label, kind = '', children } = props;
  return (
    <section class={`code ${kind}`} tabindex={0} aria-label={label}>
      <pre>{children}</pre>
    </section>
  );
}

/** Code with line numbers; the line with the error is marked, also for screen readers. */
export function Lines(props: {
  readonly lines: readonly CodeLine[];
  readonly errorLine: number | null;
  readonly label: string;
}) {
  const { lines, errorLine, label } = props;
  const width = String(lines.at(-1)?.line ?? 0).length;
  return (
    <Code kind="sql" label={label}>
      {lines.map(({ line, content }) => {
        const number = <span class="line-number">{String(line).padStart(width)}</span>;
        return line === errorLine ? (
          <mark>
            ▸<span class="unseen"> Error in line</span> {number} {`${content}\n`}
          </mark>
        ) : (
          <span>
            {'  '}
            {number} {`${content}\n`}
          </span>
        );
      })}
    </Code>
  );
}
