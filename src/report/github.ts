import { cleanLine, cleanText, counted, cut, lengthText } from '../core/text.js';
import { type CommandComparison, shareMs } from '../run/measures/compare-commands.js';
import type { PathLink } from '../run/measures/critical-path.js';
import type { NodeMeasure } from '../run/measures/node-measure.js';
import { PATH_WORDS, percentText, stepLabel, timeSentence } from '../run/measures/pace.js';
import { shareOf, slowestNodes } from '../run/measures/time-split.js';
import { labelOf, retryCommand, type Trouble, troubleLocation, troublesOf } from '../run/measures/troubles.js';
import { commandLengthMs } from '../run/verdict.js';
import { nodeWord, phaseWords } from '../run/words.js';
import { type CommandReport, type ReportSetting, verdictWords } from './content.js';
import { headLines, signed } from './text.js';

// What GitHub shows: Markdown in comments and summaries, and annotations beside the lines of files.

/** A comment has at most 65,536 characters, a summary 1 MiB; here bytes are counted, and a few are left for what others put around it. */
const MAX_MARKDOWN_BYTES = 65_000;
/** Of a trouble: lines and characters. */
const MAX_LINES = 14;
const MAX_DETAIL = 1_500;
const MAX_SKIPPED = 5;
const MAX_SLOWEST = 10;
/** Nodes that are listed of each kind of difference. */
const MAX_DIFFERENT = 20;

/** Reports as Markdown that GitHub, GitLab and Azure show. Everything that is not of the bridge's own words stands in code, where nothing has a meaning. */
export function markdownReport(reports: readonly CommandReport[]): string {
  let left = MAX_MARKDOWN_BYTES;
  return reports
    .map((report, index) => {
      const text = commandMarkdown(report, Math.floor(left / (reports.length - index)));
      left -= Buffer.byteLength(text) + 1;
      return text;
    })
    .join('\n');
}

function commandMarkdown({ command, since, against }: CommandReport, maxBytes: number): string {
  const { invocation } = command;
  const { sign, words } = verdictWords(invocation.verdict);
  const line = cleanLine(invocation.rawCommand ?? invocation.command ?? 'a command');
  const again = retryCommand(command);
  const [, ...facts] = headLines(command);
  // As code, since GitHub makes links to issues of numbers.
  if (since?.run != null) facts.push(code(since.run));
  const sections = troublesOf(command);
  const reason = invocation.statusMessage;
  const isReasonNeeded = reason !== null && (sections.length === 0 || invocation.verdict !== 'error');
  const head = [
    `### ${sign} ${code(cut(line, 200))} ${words} ${lengthText(commandLengthMs(invocation))}\n\n`,
    `${facts.join(' · ')}\n`,
    ...(isReasonNeeded ? [`\n${code(cut(cleanLine(reason), 500))}\n`] : []),
    ...(again === null ? [] : [`\nRun again what failed: ${code(again)}\n`]),
    ...(against === undefined ? [] : [againstMarkdown(against)]),
  ].join('');
  const tail = timeMarkdown(command) + slowestMarkdown(command);
  const budget = new Budget(maxBytes - Buffer.byteLength(head) - Buffer.byteLength(tail));
  const body = [
    ...changeSections(against),
    ...sections.map(({ title, troubles }) => ({ title, items: troubles.map(troubleVariants) })),
    ...slowerSections(against),
  ]
    .map((section) => sectionMarkdown(section, budget))
    .join('');
  return Buffer.byteLength(head) > maxBytes
    ? ''
    : `${head}${body}${Buffer.byteLength(tail) > maxBytes - Buffer.byteLength(head) ? '' : tail}`;
}

/** Bytes that are left. */
class Budget {
  constructor(private bytes: number) {}

  /** @returns whether the text fits; then its bytes are taken */
  take(text: string): boolean {
    const bytes = Buffer.byteLength(text);
    if (bytes > this.bytes) return false;
    this.bytes -= bytes;
    return true;
  }
}

/** Bytes of the line that says how many more there are. */
const REST_LINE = `\n- and ${Number.MAX_SAFE_INTEGER} more\n`;

/** A list below a title. */
interface Section {
  readonly title: string;
  /** Each as Markdown, in full, and in brief where there is less room. */
  readonly items: readonly (readonly (() => string)[])[];
}

function sectionMarkdown({ title, items }: Section, budget: Budget): string {
  const head = `\n#### ${title}\n\n`;
  if (!budget.take(head + REST_LINE)) return '';
  const shown: string[] = [];
  for (const variants of items) {
    const item = variants.map((markdown) => markdown()).find((text) => budget.take(text));
    if (item === undefined) break;
    shown.push(item);
  }
  const rest = items.length - shown.length;
  return `${head}${shown.join('')}${rest === 0 ? '' : `- ${shown.length === 0 ? '' : 'and '}${rest} more\n`}`;
}

/** Which run this one is compared with, and what is different in numbers. */
function againstMarkdown({
  before,
  longerMs,
  leastMs,
  changed,
  slower,
  faster,
  added,
  gone,
}: CommandComparison): string {
  const { step, startTimeUnixNano } = before.invocation;
  const at = new Date(Number(startTimeUnixNano / 1_000_000n)).toISOString().slice(0, 16).replace('T', ' ');
  const run = step === null ? 'an earlier run' : `run ${step.runId} of job ${code(step.job)}`;
  const counts = [
    ...[`${changed.length} ended otherwise`, `${slower.length} slower`, `${faster.length} faster`],
    ...[`${added.length} new`, `${gone.length} gone`],
  ].filter((text) => !text.startsWith('0 '));
  const same = `every node ended as before, and none took ${lengthText(leastMs)} more or less of the run's time`;
  return `\nAgainst ${run}, ${at} UTC: ${signed(longerMs)} · ${counts.length === 0 ? same : counts.join(' · ')}\n`;
}

/** Nodes that ended otherwise, and those that only one of the runs has. */
function changeSections(against: CommandComparison | undefined): readonly Section[] {
  if (against === undefined) return [];
  const words = (node: NodeMeasure) => `${name(node)}: ${nodeWord(node.verdict)}`;
  return [
    differences(['node ended otherwise', 'nodes ended otherwise'], against.changed, ({ before, after }) => {
      return `${name(after)}: ${nodeWord(before.verdict)} → ${nodeWord(after.verdict)}`;
    }),
    differences(['new node', 'new nodes'], against.added, (node) => `${words(node)}, ${lengthText(shareMs(node))}`),
    differences(['gone node', 'gone nodes'], against.gone, name),
  ].flat();
}

function slowerSections(against: CommandComparison | undefined): readonly Section[] {
  if (against === undefined) return [];
  return differences(['slower node', 'slower nodes'], against.slower, ({ after, beforeMs, afterMs, longerMs }) => {
    return `${name(after)}: ${lengthText(beforeMs)} → ${lengthText(afterMs)}, ${signed(longerMs)}`;
  });
}

/** The first of the nodes that are different in one way. */
function differences<Item>(
  [noun, plural]: readonly [string, string],
  nodes: readonly Item[],
  lineOf: (node: Item) => string,
): readonly Section[] {
  if (nodes.length === 0) return [];
  const items = nodes.map((node, at) => (at < MAX_DIFFERENT ? [() => `- ${lineOf(node)}\n`] : []));
  return [{ title: counted(nodes.length, noun, plural), items }];
}

function name(node: NodeMeasure): string {
  return `**${code(labelOf(node))}**`;
}

function troubleVariants(trouble: Trouble): Section['items'][number] {
  return [() => troubleMarkdown(trouble, true), () => troubleMarkdown(trouble, false)];
}

function troubleMarkdown(trouble: Trouble, isDetailed: boolean): string {
  const { label, reason, skipped } = trouble;
  const place = troubleLocation(trouble);
  const [first = '', ...more] = reason;
  const isShort = more.length === 0 && first.length <= 100;
  const title = label === null ? (place === null ? 'error' : code(place)) : `**${code(label)}**`;
  const where = label === null || place === null ? '' : ` in ${code(place)}`;
  const lines = [`- ${title}${where}${isShort && first !== '' ? `: ${code(cleanLine(first))}` : ''}\n`];
  if (isDetailed && !isShort) lines.push(fenced(reason));
  if (skipped.length > 0) {
    const rest = skipped.length - MAX_SKIPPED;
    const names = skipped.slice(0, MAX_SKIPPED).map((name) => code(cleanLine(name)));
    lines.push(`  skipped because of it: ${names.join(', ')}${rest > 0 ? ` and ${rest} more` : ''}\n`);
  }
  return lines.join('');
}

/** A block in a list's item. */
function fenced(lines: readonly string[]): string {
  const some = lines.slice(0, MAX_LINES).flatMap((line) => cleanText(line).split('\n'));
  const text = cut(some.join('\n'), MAX_DETAIL);
  const fence = '`'.repeat(Math.max(3, longestRun(text) + 1));
  const isCut = lines.length > MAX_LINES;
  return ['', `${fence}text`, ...text.split('\n'), ...(isCut ? ['…'] : []), fence, '']
    .map((line) => `  ${line}`.trimEnd())
    .join('\n')
    .concat('\n');
}

/** A text as code, in which nothing has a meaning: no markup, link, mention or number of an issue. */
function code(text: string): string {
  const line = cleanLine(text).trim();
  if (line === '') return '`?`';
  const fence = '`'.repeat(longestRun(line) + 1);
  const pad = line.startsWith('`') || line.endsWith('`') ? ' ' : '';
  return `${fence}${pad}${line}${pad}${fence}`;
}

/** The same in a table, where a bar and what escapes it would end the cell. */
function cell(text: string): string {
  return code(text.replaceAll('|', '¦').replaceAll('\\', '∖'));
}

function longestRun(text: string): number {
  return (text.match(/`+/g) ?? []).reduce((most, run) => Math.max(most, run.length), 0);
}

/** Where the time went, and the steps of the critical path that took longest. */
function timeMarkdown(command: CommandReport['command']): string {
  const { invocation, totals, timeParts, criticalPath } = command;
  const { lengthNano } = totals;
  if (lengthNano === 0n) return '';
  const wholeOf = ({ waitNano, timeNano }: PathLink) => waitNano + timeNano;
  const longest = criticalPath.links.toSorted((a, b) => (wholeOf(b) > wholeOf(a) ? 1 : -1)).slice(0, MAX_SLOWEST);
  const length = (nano: bigint) => lengthText(Number(nano) / 1e6);
  const rows = criticalPath.links
    .filter((link) => longest.includes(link))
    .map((link) => {
      const { step, waitNano, timeNano } = link;
      const name = `${stepLabel(step)}${step.uniqueId === null ? '' : `, ${phaseWords(step.phase)}`}`;
      const share = percentText(wholeOf(link), lengthNano);
      return `| ${cell(name)} | ${length(waitNano)} | ${length(timeNano)} | ${share} |\n`;
    });
  return [
    `\nWhere the ${lengthText(commandLengthMs(invocation))} went: ${timeSentence(timeParts)}\n`,
    ...(rows.length === 0
      ? []
      : [
          `\n<details><summary>critical path, ${PATH_WORDS[criticalPath.follows]}</summary>\n\n`,
          '| step | wait | time | share |\n|---|---:|---:|---:|\n',
          ...rows,
          '\n</details>\n',
        ]),
  ].join('');
}

function slowestMarkdown({ nodes, totals }: CommandReport['command']): string {
  const slowest = slowestNodes(nodes, MAX_SLOWEST);
  if (slowest.length === 0) return '';
  const rows = slowest.map((node) => {
    const ms = Number(shareOf(node.share)) / 1e6;
    const percent = percentText(shareOf(node.share), totals.lengthNano);
    const warehouse = lengthText(Number(node.warehouseTimeNano) / 1e6);
    return `| ${cell(labelOf(node))} | ${lengthText(ms)} | ${percent} | ${warehouse} |\n`;
  });
  return [
    `\n<details><summary>${counted(slowest.length, 'slowest node')}</summary>\n\n`,
    '| node | share of the time | | warehouse |\n|---|---:|---:|---:|\n',
    ...rows,
    '\n</details>\n',
  ].join('');
}

/** GitHub shows so many annotations of a step of each kind. */
const MAX_ANNOTATIONS = 10;
const MAX_ANNOTATION_LINES = 10;
const MAX_ANNOTATION = 2_000;

/** Reports as annotations, one a line: what failed as errors, what is to be noted as warnings. */
export function githubReport(reports: readonly CommandReport[], { projectPath }: ReportSetting): string {
  const errors: string[] = [];
  const warnings: string[] = [];
  for (const { command } of reports) {
    const { invocation } = command;
    const sections = troublesOf(command);
    for (const { severity, troubles } of sections) {
      if (severity === 'error') for (const trouble of troubles) errors.push(annotation('error', trouble, projectPath));
      if (severity === 'warning')
        for (const trouble of troubles) warnings.push(annotation('warning', trouble, projectPath));
    }
    const hasCause = sections.some(({ severity }) => severity === 'error');
    if (invocation.verdict !== null && invocation.verdict !== 'success' && !hasCause) {
      const title = `${invocation.command ?? 'the command'} ${verdictWords(invocation.verdict).words.split(' after')[0] ?? ''}`;
      errors.push(workflowCommand('error', { title }, invocation.statusMessage ?? 'no reason came with it'));
    }
  }
  const shown = [...errors.slice(0, MAX_ANNOTATIONS), ...warnings.slice(0, MAX_ANNOTATIONS)];
  const restErrors = errors.length - MAX_ANNOTATIONS;
  const restWarnings = warnings.length - MAX_ANNOTATIONS;
  const rest = [
    ...(restErrors > 0 ? [`${counted(restErrors, 'further error')}`] : []),
    ...(restWarnings > 0 ? [`${counted(restWarnings, 'further warning')}`] : []),
  ];
  const note = rest.length === 0 ? [] : [workflowCommand('notice', {}, `${rest.join(' and ')} not shown here`)];
  return [...shown, ...note].map((line) => `${line}\n`).join('');
}

function annotation(kind: 'error' | 'warning', trouble: Trouble, projectPath: string): string {
  const { label, path, line, reason, skipped } = trouble;
  const lines = [
    ...reason.slice(0, MAX_ANNOTATION_LINES),
    ...(skipped.length === 0 ? [] : [`${counted(skipped.length, 'node')} skipped because of it`]),
  ];
  const place =
    path === null ? {} : { file: `${projectPath}${path}`, ...(line === null ? {} : { line: String(line) }) };
  const title = label === null ? {} : { title: label };
  return workflowCommand(kind, { ...place, ...title }, lines.length === 0 ? (label ?? 'error') : lines.join('\n'));
}

/** A workflow command. Its parts are escaped as GitHub's toolkit does it, so that none of them ends it or begins another. */
function workflowCommand(name: string, properties: Readonly<Record<string, string>>, message: string): string {
  const list = Object.entries(properties).map(
    ([key, value]) => `${key}=${escaped(cleanLine(value)).replaceAll(':', '%3A').replaceAll(',', '%2C')}`,
  );
  return `::${name}${list.length === 0 ? '' : ` ${list.join(',')}`}::${escaped(cut(cleanText(message), MAX_ANNOTATION))}`;
}

function escaped(text: string): string {
  return text.replaceAll('%', '%25').replaceAll('\r', '%0D').replaceAll('\n', '%0A');
}
