import { setImmediate } from 'node:timers/promises';
import { stripVTControlCharacters } from 'node:util';
import { type Request, Router } from 'express';
import { authorize, callerOf } from '../../api/authenticator.js';
import { may, Permits, textRedactor, withPermit } from '../../api/permissions.js';
import { cleanLine, cleanText, cut, readableBytes } from '../../core/text.js';
import type { Redactor } from '../../redaction/redactor.js';
import type { CommandLog, LoggedNode } from '../../run/measures/command-log.js';
import { ArtifactError, type ArtifactPath, COMMAND_OUTPUTS, encodedArtifactPath } from '../../storage/artifacts.js';
import type { CatalogStep } from '../../storage/run-catalog.js';
import { sendPage } from './layout.js';
import type { PageDeps } from './page-deps.js';
import { countText, Mark, type Mood, Pager, pageNumber } from './parts.js';
import { tooMany } from './run-page.js';
import { MAX_NAME } from './run-page-model.js';
import { RunShell, type ShownRun, shownRun } from './run-shell.js';
import { NodeLink } from './run-troubles.js';

/** Severities by their words in the URL, with their least numbers. */
const SEVERITIES = { trace: 0, debug: 5, info: 9, warn: 13, error: 17 } as const;
type Severity = keyof typeof SEVERITIES;
const SEVERITY_NAMES = Object.keys(SEVERITIES) as readonly Severity[];
const MOODS: Readonly<Partial<Record<Severity, Mood>>> = { warn: 'busy', error: 'bad' };

/** Which records are shown, and in which order. */
export interface LogFilter {
  /** The least severity. */
  readonly severity: Severity;
  /** A part of a record's text; empty for all. */
  readonly text: string;
  /** A part of a node's unique id; empty for all. */
  readonly node: string;
  readonly isNewestFirst: boolean;
  readonly page: number;
  readonly step: string | null;
}

const MAX_FILTER_CHARS = 500;
/** The number of records on a page. */
const PAGE_SIZE = 200;
/** The default severity is that of dbt's console: lower ones are about how, not what. */
const DEFAULT_SEVERITY: Severity = 'info';

function logFilter(request: Pick<Request, 'query'>): LogFilter {
  const { severity, text, node, order, step } = request.query;
  const part = (value: unknown) => (typeof value === 'string' ? value.trim().slice(0, MAX_FILTER_CHARS) : '');
  return {
    severity: SEVERITY_NAMES.find((name) => name === severity) ?? DEFAULT_SEVERITY,
    text: part(text),
    node: part(node),
    isNewestFirst: order === 'newest',
    page: pageNumber(request),
    step: typeof step === 'string' && /^\d{1,9}$/.test(step) ? step : null,
  };
}

function queryOf({ severity, text, node, isNewestFirst, page, step }: LogFilter): string {
  const parameters = new URLSearchParams({
    ...(step !== null && { step }),
    ...(severity !== DEFAULT_SEVERITY && { severity }),
    ...(text !== '' && { text }),
    ...(node !== '' && { node }),
    ...(isNewestFirst && { order: 'newest' }),
    ...(page > 1 && { page: String(page) }),
  });
  return parameters.size === 0 ? '' : `?${parameters}`;
}

/** A log record as the visitor may see it. */
interface LogLine {
  /** Its position among all records of the step, from 1. */
  readonly number: number;
  /** Its time since the start of the step's first command. */
  readonly timeMs: number;
  readonly unixMs: number;
  readonly severity: Severity;
  readonly node: LoggedNode | null;
  readonly text: string;
}

/** The log records of a step that match a filter. */
interface FoundLines {
  /** The matching records in order. */
  readonly lines: readonly LogLine[];
  /** The number of records with the text and the node, at each severity or above. */
  readonly counts: Readonly<Record<Severity, number>>;
  readonly totalCount: number;
  /** The number of records that were not kept. */
  readonly omittedCount: number;
}

/**
 * Serves `/runs/{id}/logs`, the log records of a step by severity, text and node; and `/runs/{id}/logs.txt`, those of all pages as text. Texts are searched as the visitor sees them, so that redacted
 * texts cannot be found by searching.
 */
export function runLogsRouter(deps: PageDeps): Router {
  const { measures, redaction, clock, version } = deps;
  const permits = new Permits('requests for log records');
  const router = Router();
  const read = async ({ step }: ShownRun, filter: LogFilter, redactor: Redactor) => {
    const logs = step === null ? [] : await measures.logsOf([step], redactor);
    return await findLines(logs, filter, redactor);
  };
  router.get('/runs/:runId/logs', authorize('runs:read'), async (request, response) => {
    const caller = callerOf(response);
    const shown = await shownRun(request, response, deps);
    const redactor = textRedactor(caller, redaction);
    const filter = logFilter(request);
    const found = await withPermit(permits, response, () => read(shown, filter, redactor), tooMany);
    const outputs = await outputsOf(shown, deps, redactor);
    await sendPage(
      response,
      <RunShell {...{ shown, caller, redactor, version }} tab="/logs" nowUnixMs={clock.nowUnixMs()}>
        {outputs.map((output) => (
          <Output output={output} isOpen={found.totalCount === 0} isLinked={may(caller, 'artifacts:read')} />
        ))}
        <LogFilterForm runId={shown.run.id} filter={filter} />
        <section id="found" aria-label="Log records">
          <FoundLog {...{ filter, found }} runId={shown.run.id} />
          {redactor.level !== 'off' && (
            <p class="hint">Literals are redacted: with the right to read artifacts they are shown.</p>
          )}
        </section>
      </RunShell>,
    );
  });
  router.get('/runs/:runId/logs.txt', authorize('runs:read'), async (request, response) => {
    const shown = await shownRun(request, response, deps);
    const redactor = textRedactor(callerOf(response), redaction);
    const filter = logFilter(request);
    const { lines } = await withPermit(permits, response, () => read(shown, filter, redactor), tooMany);
    response
      .set({ 'Cache-Control': 'no-store', 'X-Content-Type-Options': 'nosniff' })
      .type('text/plain; charset=utf-8')
      .send(lines.map(plainLine).join(''));
  });
  return router;
}

/** The end of a command's standard output or error, as the visitor may see it. */
interface ShownOutput {
  readonly name: string;
  /** The step whose command wrote it. */
  readonly step: CatalogStep;
  /** The artifact with the complete output; `null` for output of a job. */
  readonly path: ArtifactPath | null;
  readonly text: string;
  /** The number of bytes before it that are not shown. */
  readonly omittedBytes: number;
}

/** The part of an output that a page shows, in bytes. */
const MAX_OUTPUT_BYTES = 32 * 1024;
const OUTPUT_NAMES: Readonly<Record<keyof typeof COMMAND_OUTPUTS, string>> = {
  both: 'Output',
  stdout: 'Standard output',
  stderr: 'Standard error',
};

/** Returns the output of a step's command, as far as it was kept: by the job that ran it, else by `exec`. If a command ran several engine commands, the step of the first one has it. */
export async function outputsOf(
  { steps, step }: Pick<ShownRun, 'steps' | 'step'>,
  deps: Pick<PageDeps, 'artifacts' | 'logger'> & { readonly jobs: Pick<PageDeps['jobs'], 'outputOf'> },
  redactor: Redactor,
): Promise<readonly ShownOutput[]> {
  if (step === null) return [];
  const words = step.command.join(' ');
  const first = steps.find(({ command }) => command.join(' ') === words);
  for (const one of new Set([step, first ?? step])) {
    const kept = await deps.jobs.outputOf(one.stepId);
    const found =
      kept === undefined
        ? await keptFiles(one, deps)
        : [{ name: OUTPUT_NAMES.both, step: one, path: null, text: kept.text, omittedBytes: kept.droppedBytes }];
    const shown = found.map((output) => ({ ...output, text: shownOutput(output.text, redactor) }));
    if (shown.some(({ text }) => text !== '')) return shown;
  }
  return [];
}

async function keptFiles(
  step: CatalogStep,
  { artifacts, logger }: Pick<PageDeps, 'artifacts' | 'logger'>,
): Promise<readonly ShownOutput[]> {
  const names = Object.keys(OUTPUT_NAMES) as readonly (keyof typeof COMMAND_OUTPUTS)[];
  try {
    const found = await Promise.all(
      names.map(async (name) => {
        const path = COMMAND_OUTPUTS[name];
        const file = await artifacts.stat(step, path);
        if (file === undefined || file.sizeBytes === 0) return [];
        const from = Math.max(0, file.sizeBytes - MAX_OUTPUT_BYTES);
        const opened = await artifacts.open(step, path, { from, to: file.sizeBytes });
        if (opened === undefined) return [];
        const pieces: Buffer[] = [];
        for await (const piece of opened.content) pieces.push(piece as Buffer);
        const text = Buffer.concat(pieces).toString('utf8');
        // Begins at the start of a line.
        const lineStart = from === 0 ? 0 : text.indexOf('\n') + 1;
        const omittedBytes = from + Buffer.byteLength(text.slice(0, lineStart));
        return [{ name: OUTPUT_NAMES[name], step, path, text: text.slice(lineStart), omittedBytes }];
      }),
    );
    return found.flat();
  } catch (error) {
    if (!(error instanceof ArtifactError)) throw error;
    // The log records are shown without it.
    logger.warn({ error: String(error) }, 'failed to read the output of a command');
    return [];
  }
}

/** Removes colours, and puts what a carriage return overwrote on a separate line. */
function shownOutput(text: string, redactor: Redactor): string {
  const plain = stripVTControlCharacters(text).replaceAll(/\r\n?/g, '\n').trimEnd();
  return redactor.byPolicy('text', plain);
}

function Output(props: { readonly output: ShownOutput; readonly isOpen: boolean; readonly isLinked: boolean }) {
  const { output, isOpen, isLinked } = props;
  const { name, step, path, text, omittedBytes } = output;
  if (text === '') return null;
  return (
    <details class="output" open={isOpen} id={`output-${name.replaceAll(' ', '-').toLowerCase()}`}>
      <summary>
        {name} of the command <span class="soft">{countText(text.split('\n').length, 'line')}</span>
      </summary>
      {omittedBytes > 0 && <p class="hint">{readableBytes(omittedBytes)} before it are not shown.</p>}
      <section class="code" tabindex={0} aria-label={`${name} of the command`}>
        <pre>{text}</pre>
      </section>
      {path !== null && isLinked && (
        <p>
          <a href={`/runs/${step.runId}/artifacts/${encodedArtifactPath(path)}?step=${step.index}`}>{path}</a>
        </p>
      )}
    </details>
  );
}

/** The number of texts that are redacted without a pause for other work. */
const TEXTS_AT_ONCE = 500;

/** Finds the log records of a step's commands that match a filter. */
export async function findLines(
  logs: readonly CommandLog[],
  filter: LogFilter,
  redactor: Redactor,
): Promise<FoundLines> {
  const [first] = logs;
  const counts = { trace: 0, debug: 0, info: 0, warn: 0, error: 0 };
  const lines: LogLine[] = [];
  const text = filter.text.toLowerCase();
  const id = filter.node.toLowerCase();
  let number = 0;
  let redactedCount = 0;
  for (const log of logs) {
    const { timesMs, severities, nodeAt, texts, startTimeUnixNano } = log;
    const nodes = log.nodes.map((node) => shownNode(node, redactor));
    const data = new Set(log.dataAt);
    const startUnixMs = Number(startTimeUnixNano) / 1e6;
    const sinceFirstMs = first === undefined ? 0 : Number(startTimeUnixNano - first.startTimeUnixNano) / 1e6;
    for (const [at, raw] of texts.entries()) {
      number += 1;
      const severity = severityOf(severities[at] ?? 0);
      const node = nodes[nodeAt[at] ?? -1] ?? null;
      if (id !== '' && node?.uniqueId.toLowerCase().includes(id) !== true) continue;
      const isWanted = SEVERITIES[severity] >= SEVERITIES[filter.severity];
      if (text === '' && !isWanted) {
        counts[severity] += 1;
        continue;
      }
      if (redactor.level !== 'off') {
        redactedCount += 1;
        if (redactedCount % TEXTS_AT_ONCE === 0) await setImmediate();
      }
      const shown = redactor.byPolicy(data.has(at) ? 'deny' : 'text', raw);
      if (text !== '' && !shown.toLowerCase().includes(text)) continue;
      counts[severity] += 1;
      if (!isWanted) continue;
      const timeMs = timesMs[at] ?? 0;
      lines.push({
        number,
        timeMs: sinceFirstMs + timeMs,
        unixMs: startUnixMs + timeMs,
        severity,
        node,
        text: shown,
      });
    }
  }
  if (filter.isNewestFirst) lines.reverse();
  const omittedCount = logs.reduce((sum, log) => sum + log.omittedCount, 0);
  return { lines, counts: countsAndAbove(counts), totalCount: number, omittedCount };
}

function shownNode({ uniqueId, label }: LoggedNode, redactor: Redactor): LoggedNode {
  return { uniqueId: redactor.byPolicy('name', uniqueId), label: redactor.byPolicy('name', label) };
}

function severityOf(severityNumber: number): Severity {
  return SEVERITY_NAMES.findLast((name) => severityNumber >= SEVERITIES[name]) ?? 'trace';
}

function countsAndAbove(counts: Readonly<Record<Severity, number>>): Record<Severity, number> {
  const sum = { ...counts };
  let above = 0;
  for (const name of SEVERITY_NAMES.toReversed()) {
    above += sum[name];
    sum[name] = above;
  }
  return sum;
}

function LogFilterForm({ runId, filter }: { readonly runId: number; readonly filter: LogFilter }) {
  const { step, severity, isNewestFirst, text, node } = filter;
  return (
    <form method="get" action={`/runs/${runId}/logs`} class="filter" aria-label="Which records" data-typed="#found">
      {step !== null && <input type="hidden" name="step" value={step} />}
      {severity !== DEFAULT_SEVERITY && <input type="hidden" name="severity" value={severity} />}
      {isNewestFirst && <input type="hidden" name="order" value="newest" />}
      <label class="wide">
        Text <input type="search" name="text" value={text} maxlength={MAX_FILTER_CHARS} />
      </label>
      <label class="wide">
        Node <input type="search" name="node" value={node} maxlength={MAX_FILTER_CHARS} />
      </label>
      <button type="submit">Show</button>
    </form>
  );
}

function FoundLog(props: { readonly runId: number; readonly filter: LogFilter; readonly found: FoundLines }) {
  const { runId, filter, found } = props;
  const { lines, totalCount, omittedCount } = found;
  const { page, isNewestFirst } = filter;
  const hrefOf = (change: Partial<LogFilter>) => `/runs/${runId}/logs${queryOf({ ...filter, page: 1, ...change })}`;
  const textHref = `/runs/${runId}/logs.txt${queryOf({ ...filter, page: 1 })}`;
  if (totalCount === 0) return <p class="empty">No log records have come from this step.</p>;
  const shown = lines.slice((page - 1) * PAGE_SIZE, page * PAGE_SIZE);
  return (
    <>
      <LogChips {...{ filter, found, hrefOf }} />
      {shown.length === 0 && (
        <p class="empty">
          No log record is like that. <a href={hrefOf({ severity: 'trace', text: '', node: '' })}>Show all</a>
        </p>
      )}
      {shown.length > 0 && (
        <>
          <p class="actions-line">
            <a href={hrefOf({ isNewestFirst: !isNewestFirst })}>{isNewestFirst ? 'Oldest first' : 'Newest first'}</a>
            <a href={textHref}>As text</a>
            <button type="button" class="quiet" data-copy-from={textHref} aria-label="Copy all of them as text" hidden>
              Copy
            </button>
          </p>
          <LogTable
            {...{ lines: shown, runId }}
            contextHref={({ number }) =>
              `/runs/${runId}/logs${queryOf({
                ...{ severity: 'trace', text: '', node: '', isNewestFirst: false, step: filter.step },
                page: Math.ceil(number / PAGE_SIZE),
              })}#line-${number}`
            }
          />
          <Pager
            {...{ page, pageSize: PAGE_SIZE, totalCount: lines.length, noun: 'record' }}
            words={['Before', 'Next']}
            href={(to) => hrefOf({ page: to })}
          />
        </>
      )}
      {omittedCount > 0 && (
        <p class="hint">{countText(omittedCount, 'further record')} of this run can be read in its JSONL alone.</p>
      )}
    </>
  );
}

/** Links that change one part of the filter. */
function LogChips(props: {
  readonly filter: LogFilter;
  readonly found: FoundLines;
  readonly hrefOf: (change: Partial<LogFilter>) => string;
}) {
  const { filter, found, hrefOf } = props;
  const words: Readonly<Record<Severity, string>> = {
    trace: 'All',
    debug: 'Debug +',
    info: 'Info +',
    warn: 'Warn +',
    error: 'Error',
  };
  return (
    <nav class="chips" aria-label="Severity">
      {SEVERITY_NAMES.toReversed().map((name) => (
        <a class="chip" href={hrefOf({ severity: name })} {...(name === filter.severity && { 'aria-current': 'true' })}>
          {words[name]} <span class="soft">{found.counts[name].toLocaleString('en')}</span>
        </a>
      ))}
      {filter.text !== '' && (
        <a class="chip name" href={hrefOf({ text: '' })} aria-label={`Without the text ${cut(filter.text, 100)}`}>
          “{cut(filter.text, 100)}” <span aria-hidden="true">×</span>
        </a>
      )}
      {filter.node !== '' && (
        <a class="chip name" href={hrefOf({ node: '' })} aria-label={`Without the node ${cut(filter.node, 100)}`}>
          {cut(filter.node, 100)} <span aria-hidden="true">×</span>
        </a>
      )}
    </nav>
  );
}

function LogTable(props: {
  readonly lines: readonly LogLine[];
  readonly runId: number;
  readonly contextHref: (line: LogLine) => string;
}) {
  const { lines, runId, contextHref } = props;
  return (
    <section class="scroll" tabindex={0} aria-label="Log records of the step">
      <table class="log">
        <thead>
          <tr>
            <th scope="col" class="number">
              Time (s)
            </th>
            <th scope="col">Severity</th>
            <th scope="col">Node</th>
            <th scope="col">Message</th>
          </tr>
        </thead>
        <tbody>
          {lines.map((line) => (
            <tr id={`line-${line.number}`}>
              <td class="number nowrap">
                <a class="quiet-link" href={contextHref(line)} title={`${exactTime(line)}; show what was beside it`}>
                  {sinceText(line.timeMs)}
                </a>
              </td>
              <td>
                {MOODS[line.severity] === undefined ? (
                  <span class="soft">{line.severity}</span>
                ) : (
                  <Mark word={line.severity} mood={MOODS[line.severity] ?? 'neutral'} />
                )}
              </td>
              <td class="name">
                {line.node !== null && (
                  <NodeLink runId={runId} uniqueId={line.node.uniqueId} text={cut(line.node.label, MAX_NAME)} />
                )}
              </td>
              <td class="message">
                <Message text={line.text} />
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
}

/** Shows the first line of a longer message, and the others when it is opened. */
const MAX_OPEN_CHARS = 1_000;
const MAX_OPEN_LINES = 12;
const MAX_HEAD_CHARS = 300;

function Message({ text }: { readonly text: string }) {
  const end = text.indexOf('\n');
  const isLong = text.length > MAX_OPEN_CHARS || text.split('\n', MAX_OPEN_LINES + 1).length > MAX_OPEN_LINES;
  if (!isLong) return <code class="text">{text}</code>;
  return (
    <details>
      <summary>
        <code class="text">{cut(end < 0 ? text : text.slice(0, end), MAX_HEAD_CHARS)}</code>
      </summary>
      <div class="code">
        <pre class="text">{text}</pre>
      </div>
    </details>
  );
}

/** Formats seconds to the millisecond: `0.412`, `12.034`, `4:12.034`. */
function sinceText(timeMs: number): string {
  const ms = Math.round(Math.abs(timeMs));
  const minutes = Math.floor(ms / 60_000);
  const seconds = ((ms % 60_000) / 1_000).toFixed(3);
  return `${timeMs <= -0.5 ? '−' : ''}${minutes === 0 ? seconds : `${minutes}:${seconds.padStart(6, '0')}`}`;
}

function exactTime({ unixMs }: LogLine): string {
  const date = new Date(unixMs);
  return Number.isNaN(date.getTime()) ? '' : date.toISOString();
}

/** Formats a record on one line; further lines of its text are indented. */
export function plainLine(line: LogLine): string {
  const node = line.node === null ? '' : cleanLine(`${line.node.uniqueId}: `);
  const head = `${sinceText(line.timeMs).padStart(10)}  ${line.severity.toUpperCase().padEnd(5)}  `;
  return `${head}${node}${cleanText(line.text).replaceAll('\n', `\n${' '.repeat(head.length)}`)}\n`;
}
