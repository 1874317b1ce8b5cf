import { createHash } from 'node:crypto';
import { raw } from 'hono/html';
import type { Child } from 'hono/jsx';
import { counted, lengthText, visibleText, withoutCommands } from '../core/text.js';
import type { NodeMeasure } from '../run/measures/node-measure.js';
import { paceOf, percentText } from '../run/measures/pace.js';
import { shareOf, slowestNodes } from '../run/measures/time-split.js';
import { timelineOf } from '../run/measures/timeline.js';
import {
  labelOf,
  retryCommand,
  type Trouble,
  type TroubleSection,
  troubleLocation,
  troublesOf,
} from '../run/measures/troubles.js';
import { commandLengthMs } from '../run/verdict.js';
import { nodeWord, phaseWords } from '../run/words.js';
import { ConcurrencyChart, CriticalPathTable, PaceFacts, TimeBar } from '../web/page/run-time.js';
import { type CommandReport, type ReportSetting, verdictWords } from './content.js';
import { headLines } from './text.js';

const STYLE = `
:root { color-scheme: light dark; --good: #1a7f37; --bad: #b42318; --warn: #8a5a00; --quiet: #5b6470; --line: #d0d7de; --box: #f6f8fa; --accent: #0969da; }
@media (prefers-color-scheme: dark) { :root { --good: #56d364; --bad: #ff8a80; --warn: #e3b341; --quiet: #9aa4af; --line: #3d444d; --box: #1b2129; --accent: #6cb6ff; } }
body { font: 14px/1.5 system-ui, sans-serif; max-width: 1280px; margin: 0 auto; padding: 16px; font-variant-numeric: tabular-nums; }
h1 { font-size: 18px; margin: 0 0 4px; overflow-wrap: anywhere; }
h2 { font-size: 14px; margin: 16px 0 4px; }
p { margin: 4px 0; }
code, pre { font: 12px/1.5 ui-monospace, monospace; overflow-wrap: anywhere; }
pre { white-space: pre-wrap; background: var(--box); padding: 8px; margin: 4px 0; max-height: 320px; overflow: auto; }
ul { list-style: none; margin: 0; padding: 0; }
li { padding: 8px 0 8px 12px; border-left: 3px solid var(--line); margin: 4px 0; overflow-wrap: anywhere; }
.error li { border-color: var(--bad); } .warning li { border-color: var(--warn); }
.bad { color: var(--bad); } .good { color: var(--good); } .quiet { color: var(--quiet); }
table { border-collapse: collapse; font-size: 13px; width: 100%; }
th, td { text-align: left; padding: 4px 8px; border-bottom: 1px solid var(--line); overflow-wrap: anywhere; }
.number { text-align: right; white-space: nowrap; }
.scroll { overflow-x: auto; } .on-card { display: none; }
.hint { color: var(--quiet); font-size: 12px; }
dl { display: grid; grid-template-columns: repeat(auto-fill, minmax(min(200px, 45%), 1fr)); gap: 8px 24px; margin: 8px 0; }
dt { color: var(--quiet); font-size: 12px; } dd { margin: 0; overflow-wrap: anywhere; }
figure { margin: 0; }
svg { display: block; }
svg.timeline { min-width: 720px; }
svg.parts { width: 100%; height: 12px; } svg.concurrency { width: 100%; height: 60px; }
p.parts { display: flex; flex-wrap: wrap; gap: 4px 20px; } p.parts svg { display: inline-block; width: 10px; height: 10px; }
.parts .parse { fill: #8a6fd6; } .parts .compile, .concurrency .running { fill: #4a8bdc; } .parts .run { fill: #339c92; }
.parts .warehouse { fill: #d6962d; } .parts .threads { fill: #cf6aa0; } .parts .rest, .concurrency .queued { fill: #8b95a1; }
svg text { font: 11px system-ui, sans-serif; fill: var(--quiet); }
.success { fill: var(--good); } .failed, .error-bar { fill: var(--bad); } .warned { fill: var(--warn); } .other { fill: var(--quiet); }
.wait { opacity: .3; }
.phase { fill: var(--accent); opacity: .35; }
.critical { stroke: currentColor; stroke-width: 1.5; }
.grid { stroke: var(--line); }
article + article { border-top: 1px solid var(--line); margin-top: 24px; padding-top: 16px; }
summary { cursor: pointer; }
footer { margin-top: 24px; font-size: 12px; color: var(--quiet); }
`;

/** Nothing is loaded, sent or run: the page has a style of its own and no script. */
const POLICY = `default-src 'none'; style-src 'sha256-${createHash('sha256').update(STYLE).digest('base64')}'; base-uri 'none'; form-action 'none'`;

/** Reports as one page that needs nothing else. */
export function htmlReport(reports: readonly CommandReport[], { version }: ReportSetting): string {
  const [first] = reports;
  const title = first === undefined ? 'report' : headingOf(first);
  const page = (
    <html lang="en">
      <head>
        <meta charset="utf-8" />
        <meta http-equiv="Content-Security-Policy" content={POLICY} />
        <meta name="viewport" content="width=device-width, initial-scale=1" />
        <meta name="color-scheme" content="light dark" />
        <title>{title}</title>
        <style>{raw(STYLE)}</style>
      </head>
      <body>
        <main>
          {reports.map((report) => (
            <Command report={report} />
          ))}
        </main>
        <footer>run-bridge {version} · times are in UTC</footer>
      </body>
    </html>
  );
  return withoutCommands(visibleText(`<!doctype html>\n${String(page)}\n`));
}

function headingOf({ command: { invocation } }: CommandReport): string {
  const { sign, words } = verdictWords(invocation.verdict);
  return `${sign} ${invocation.command ?? 'command'} ${words} ${lengthText(commandLengthMs(invocation))}`;
}

/** Troubles of a kind that stand open; further ones are behind a click, and of those no more than that. */
const MAX_OPEN = 10;
const MAX_FOLDED = 500;

function Command({ report }: { readonly report: CommandReport }) {
  const { command, traceId, since } = report;
  const { invocation } = command;
  const sections = troublesOf(command);
  const again = retryCommand(command);
  const isGood = invocation.verdict === 'success';
  const [, ...facts] = headLines(command);
  if (since?.run != null) facts.push(since.run);
  const isReasonNeeded = invocation.statusMessage !== null && (sections.length === 0 || invocation.verdict !== 'error');
  const started = new Date(Number(invocation.startTimeUnixNano / 1_000_000n)).toISOString();
  return (
    <article>
      <h1 class={isGood ? 'good' : 'bad'}>{headingOf(report)}</h1>
      <p>
        <code>{invocation.rawCommand ?? ''}</code>{' '}
        <span class="quiet">started {started.slice(0, 19).replace('T', ' ')}</span>
      </p>
      <p>{facts.join(' · ')}</p>
      {isReasonNeeded && <p>{invocation.statusMessage ?? ''}</p>}
      {again !== null && (
        <p>
          Run again what failed: <code>{again}</code>
        </p>
      )}
      {sections.map((section) => (
        <Section section={section} />
      ))}
      <WhereTimeWent report={report} />
      <Slowest report={report} />
      <p class="quiet">
        trace <code>{traceId}</code>
      </p>
    </article>
  );
}

/** Steps of the critical path that are listed: those that took longest. */
const MAX_STEPS = 20;

function WhereTimeWent({ report }: { readonly report: CommandReport }): Child {
  const { command } = report;
  const { timeParts, criticalPath, totals } = command;
  const pace = paceOf(command);
  return (
    <>
      <section>
        <h2>Where the {lengthText(commandLengthMs(command.invocation))} went</h2>
        <TimeBar parts={timeParts} />
        <PaceFacts pace={pace} />
        {pace.concurrency !== null && <ConcurrencyChart concurrency={pace.concurrency} />}
      </section>
      <Timeline report={report} />
      <CriticalPathTable
        path={criticalPath}
        lengthNano={totals.lengthNano}
        limit={MAX_STEPS}
        id={`critical-path-${report.traceId}-${command.invocation.index}`}
      />
    </>
  );
}

function Section({ section: { title, severity, troubles } }: { readonly section: TroubleSection }) {
  const open = troubles.slice(0, MAX_OPEN);
  const folded = troubles.slice(MAX_OPEN, MAX_OPEN + MAX_FOLDED);
  const rest = troubles.length - open.length - folded.length;
  return (
    <section class={severity}>
      <h2>{title}</h2>
      <Troubles troubles={open} />
      {folded.length > 0 && (
        <details>
          <summary>{folded.length} more</summary>
          <Troubles troubles={folded} />
        </details>
      )}
      {rest > 0 && <p>and {rest} more that are not shown</p>}
    </section>
  );
}

function Troubles({ troubles }: { readonly troubles: readonly Trouble[] }) {
  return (
    <ul>
      {troubles.map((trouble) => {
        const place = troubleLocation(trouble);
        return (
          <li>
            {trouble.label !== null && <strong>{trouble.label}</strong>} {place !== null && <code>{place}</code>}
            <Reason lines={trouble.reason} />
            <Skipped labels={trouble.skipped} />
          </li>
        );
      })}
    </ul>
  );
}

function Reason({ lines }: { readonly lines: readonly string[] }): Child {
  if (lines.length === 0) return null;
  return lines.length === 1 ? <p>{lines[0] ?? ''}</p> : <pre>{lines.join('\n')}</pre>;
}

const MAX_SKIPPED = 5;

function Skipped({ labels }: { readonly labels: readonly string[] }): Child {
  if (labels.length === 0) return null;
  const rest = labels.length - MAX_SKIPPED;
  const named = labels.slice(0, MAX_SKIPPED).join(', ');
  return (
    <p class="quiet">
      skipped because of it: {named}
      {rest > 0 && ` and ${rest} more`}
    </p>
  );
}

const MAX_SLOWEST = 20;

function Slowest({ report: { command } }: { readonly report: CommandReport }): Child {
  const slowest = slowestNodes(command.nodes, MAX_SLOWEST);
  if (slowest.length === 0) return null;
  return (
    <section>
      <h2>Slowest nodes</h2>
      <div class="scroll">
        <table>
          <thead>
            <tr>
              <th>node</th>
              <th class="number">share</th>
              <th class="number">of the run</th>
              <th class="number">warehouse</th>
              <th class="number">rows</th>
            </tr>
          </thead>
          <tbody>
            {slowest.map((node) => (
              <tr>
                <td>{labelOf(node)}</td>
                <td class="number">{lengthText(Number(shareOf(node.share)) / 1e6)}</td>
                <td class="number">{percentText(shareOf(node.share), command.totals.lengthNano)}</td>
                <td class="number">{lengthText(Number(node.warehouseTimeNano) / 1e6)}</td>
                <td class="number">{node.rows ?? ''}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </section>
  );
}

/** Nodes that are drawn: those that took longest, and all that failed first. */
const MAX_BARS = 3_000;
const WIDTH = 1_200;
const LANE = 12;
const BAR = 9;
const TOP = 20;

/** What was worked on over time, in as many lanes as were busy at once, up to a height that can be read; the critical path has an outline. */
function Timeline({ report: { command } }: { readonly report: CommandReport }): Child {
  const timeline = timelineOf(command, MAX_BARS);
  if (timeline === null || timeline.nodes.length === 0) return null;
  const { start: from, end: until, phaseRows, groups, nodes, omittedCount, critical } = timeline;
  const rows = groups.flatMap((group) => group.lanes);
  const crowds = groups.flatMap((group) => group.crowds);
  const rowCount = rows.length + Number(crowds.length > 0);
  const x = (at: bigint) => round((Number(at - from) / Number(until - from)) * WIDTH);
  const phaseTop = TOP + 4;
  const nodeTop = phaseTop + phaseRows.length * LANE + 8;
  const height = nodeTop + rowCount * LANE + 4;
  const ticks = [0, 1, 2, 3, 4].map((part) => ({ at: (WIDTH / 4) * part, ms: (Number(until - from) / 4e6) * part }));
  return (
    <section>
      <h2>Timeline</h2>
      <p class="quiet">
        Above the phases, below what was worked on of{' '}
        {omittedCount > 0
          ? `${nodes.length} of ${counted(nodes.length + omittedCount, 'node')}`
          : counted(nodes.length, 'node')}
        , outlined on the critical path.
      </p>
      <div class="scroll">
        <svg
          class="timeline"
          viewBox={`0 0 ${WIDTH} ${height}`}
          role="img"
          aria-label="Phases and nodes over time; the table below has the slowest"
        >
          {ticks.map(({ at, ms }) => (
            <>
              <line class="grid" x1={at} x2={at} y1={TOP - 4} y2={height} />
              <text x={at === WIDTH ? at - 2 : at + 2} y="12" text-anchor={at === WIDTH ? 'end' : 'start'}>
                {lengthText(ms)}
              </text>
            </>
          ))}
          {phaseRows.flatMap((row, lane) =>
            row.map(({ phase, start, end }) => (
              <rect class="phase" x={x(start)} y={phaseTop + lane * LANE} width={width(x(start), x(end))} height={BAR}>
                <title>{phase.phase}</title>
              </rect>
            )),
          )}
          {rows.flatMap((row, lane) =>
            row.map(({ node, phase, start, end }) => (
              <rect
                class={`${barClass(node)}${critical.has(node.uniqueId) ? ' critical' : ''}`}
                x={x(start)}
                y={nodeTop + lane * LANE}
                width={width(x(start), x(end))}
                height={BAR}
              >
                <title>{`${labelOf(node)}: ${nodeWord(node.verdict)}, ${phaseWords(phase)} ${lengthText(Number(end - start) / 1e6)}`}</title>
              </rect>
            )),
          )}
          {crowds.map(({ start, end, slices }) => (
            <rect
              class="other wait"
              x={x(start)}
              y={nodeTop + rows.length * LANE}
              width={width(x(start), x(end))}
              height={BAR}
            >
              <title>{`${slices.length} more at once`}</title>
            </rect>
          ))}
        </svg>
      </div>
    </section>
  );
}

function barClass({ verdict }: NodeMeasure): string {
  switch (verdict) {
    case 'success':
    case 'failed':
    case 'warned':
      return verdict;
    case 'error':
      return 'error-bar';
    default:
      return 'other';
  }
}

function width(from: number, to: number): number {
  return round(Math.max(1, to - from));
}

function round(value: number): number {
  return Math.round(value * 10) / 10;
}
