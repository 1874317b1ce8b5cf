import { cleanText } from '../core/text.js';
import { executesNodes } from '../run/measures/execution.js';
import type { NodeMeasure } from '../run/measures/node-measure.js';
import { shareOf } from '../run/measures/time-split.js';
import { nameOf, readableLines, type Trouble, testedModelOf, troublesOf } from '../run/measures/troubles.js';
import { commandLengthMs, hasOwnWord } from '../run/verdict.js';
import { nodeWord } from '../run/words.js';
import type { CommandReport } from './content.js';

const TEST_TYPES: ReadonlySet<string | null> = new Set(['test', 'unit_test']);

/** A test, or something that failed, in the words of JUnit. */
interface TestCase {
  /** What names the case within its class, and both together in the file and in the next run: CI servers show one case of a key. */
  readonly name: string;
  readonly classname: string;
  /** The file of the project, and the line in it. */
  readonly path: string | null;
  readonly line: number | null;
  /** What of the command's length fell to it, in nanoseconds. */
  readonly shareNano: bigint;
  /** An element and its message; `null` for a test that passed. */
  readonly result: {
    readonly element: 'failure' | 'error' | 'skipped';
    readonly message: string;
    readonly text: string;
  } | null;
  /** A warning of a test that passed. */
  readonly output: string | null;
}

/**
 * Reports as the XML of JUnit, as far as CI systems agree on it: a suite for each command, a case for each test and unit test that it
 * executed, skipped or did not finish; and, where something else went wrong, a suite behind it with a case for each of that.
 */
export function junitReport(reports: readonly CommandReport[]): string {
  const words = new UniqueTexts('-');
  const keys = new UniqueTexts(' ');
  const suites = reports.flatMap((report) => suitesOf(report, words, keys));
  const sum = (count: (cases: readonly TestCase[]) => number) =>
    suites.reduce((total, { cases }) => total + count(cases), 0);
  const attributes = {
    name: 'run-bridge',
    ...countsOf(sum),
    time: seconds(reports.reduce((ms, report) => ms + lengthMs(report), 0)),
  };
  return `<?xml version="1.0" encoding="UTF-8"?>\n${element('testsuites', attributes, suites.map(({ xml }) => xml).join(''), '\n')}\n`;
}

/** Tells equal texts apart by their order: the second `build` is `build-2`. */
class UniqueTexts {
  private readonly taken = new Set<string>();

  constructor(private readonly separator: string) {}

  /** @param context texts of different contexts may be equal */
  next(text: string, context = ''): string {
    for (let count = 1; ; count++) {
      const one = count === 1 ? text : `${text}${this.separator}${count}`;
      const key = `${context}\0${one}`;
      if (this.taken.has(key)) continue;
      this.taken.add(key);
      return one;
    }
  }
}

interface Suite {
  readonly xml: string;
  readonly cases: readonly TestCase[];
}

/** @param words the commands of the report. @param keys the names of its cases, in their classes */
function suitesOf(report: CommandReport, words: UniqueTexts, keys: UniqueTexts): readonly Suite[] {
  const { command, traceId } = report;
  const { invocation } = command;
  const word = words.next(invocation.command ?? 'command');
  const isTest = ({ nodeType }: NodeMeasure) => TEST_TYPES.has(nodeType);
  const named = command.nodes
    .filter((node) => isTest(node) && (node.isExecuted || hasNoOutcome(invocation.command, node)))
    .map((node) => ({ ...testCase(node, word), uniqueId: node.uniqueId }));
  const name = invocation.rawCommand ?? invocation.command ?? 'command';
  const common = {
    timestamp: new Date(Number(invocation.startTimeUnixNano / 1_000_000n)).toISOString().slice(0, 19),
  };
  const id = `${traceId}-${invocation.index}`;
  const cases = withUniqueKeys(named, keys);
  const listed = new Set(cases.length === 0 ? [] : command.nodes.filter(isTest));
  const found = troublesOf(command)
    .filter(({ severity, isOfCutNodes }) => severity === 'error' || isOfCutNodes)
    .flatMap(({ troubles }) =>
      troubles
        .filter(({ node }) => node === null || !listed.has(node))
        .map((trouble) => ({ ...troubleCase(trouble, word), uniqueId: trouble.node?.uniqueId ?? null })),
    );
  const others = withUniqueKeys(found, keys);
  const tests = suiteOf({ ...common, id, time: seconds(lengthMs(report)) }, name, cases);
  if (others.length === 0) return [tests];
  // A suite of its own: the counts of the other one stay those of the tests.
  const otherMs = others.reduce((ms, { shareNano }) => ms + Number(shareNano) / 1e6, 0);
  return [tests, suiteOf({ ...common, id: `${id}-errors`, time: seconds(otherMs) }, `${name}: errors`, others)];
}

/** Tells cases of equal keys apart by their nodes, so that each has the same key in every run, whichever began first. */
function withUniqueKeys(
  cases: readonly (TestCase & { readonly uniqueId: string | null })[],
  keys: UniqueTexts,
): readonly TestCase[] {
  const compare = (one: string, other: string) => (one < other ? -1 : one > other ? 1 : 0);
  const inOrder = cases.toSorted((one, other) => compare(one.uniqueId ?? '', other.uniqueId ?? ''));
  const names = new Map(inOrder.map((one) => [one, keys.next(one.name, one.classname)]));
  return cases.map((one) => ({ ...one, name: names.get(one) ?? one.name }));
}

/** Whether a command that executes nodes came to no outcome with one: it was skipped, interrupted, or never ended. */
function hasNoOutcome(command: string | null, { verdict }: NodeMeasure): boolean {
  return executesNodes(command) && verdict !== 'success' && verdict !== 'warned';
}

/**
 * The class of a node's case: the command, the node's package, its file, and of a unit test the model, such as
 * `build/shop/models/schema.yml`. Several nodes of a file differ by their names, with their versions.
 */
function classOf(node: NodeMeasure, word: string): string {
  const { uniqueId, relativePath, name } = node;
  const [type, project] = uniqueId.split('.');
  const tested = name === null ? null : testedModelOf(uniqueId, name);
  return [word, project, relativePath ?? type, tested].filter((part) => typeof part === 'string').join('/');
}

function suiteOf(attributes: Readonly<Record<string, string>>, name: string, cases: readonly TestCase[]): Suite {
  const all = { name, ...countsOf((count) => count(cases)), ...attributes };
  return { xml: element('testsuite', all, cases.map(caseXml).join(''), '\n'), cases };
}

/** A failed model, hook or source, an interrupted node, or an error of the run. */
function troubleCase({ label, node, path, line, reason }: Trouble, word: string): TestCase {
  if (node !== null) {
    return { ...nodeCase(node, word, label ?? node.uniqueId), ...resultOf(node, reason), path, line };
  }
  const [first = 'error'] = reason;
  const result = { element: 'error' as const, message: first, text: reason.join('\n') };
  const key = { name: label ?? 'error of the run', classname: path === null ? word : `${word}/${path}` };
  return { ...key, path, line, shareNano: 0n, result, output: null };
}

function nodeCase(node: NodeMeasure, word: string, name: string) {
  return { name, classname: classOf(node, word), shareNano: shareOf(node.share) };
}

function countsOf(count: (of: (cases: readonly TestCase[]) => number) => number) {
  const having = (name: string) => count((cases) => cases.filter(({ result }) => result?.element === name).length);
  return {
    tests: String(count((cases) => cases.length)),
    failures: String(having('failure')),
    errors: String(having('error')),
    skipped: String(having('skipped')),
  };
}

function testCase(node: NodeMeasure, word: string): TestCase {
  const diffLines = node.diffTable?.trimEnd().split('\n') ?? [];
  const reason = [...diffLines, ...(node.message === null ? [] : readableLines(node.message))];
  const own = {
    ...nodeCase(node, word, nameOf(node) ?? node.uniqueId),
    path: node.relativePath,
    line: node.definedAtLine,
  };
  return { ...own, ...resultOf(node, reason) };
}

/** How a node ended. @param reason why, in lines */
function resultOf(node: NodeMeasure, reason: readonly string[]): Pick<TestCase, 'result' | 'output'> {
  const rows =
    node.failingRows === null ? null : `${node.failingRows} failing ${node.failingRows === 1 ? 'row' : 'rows'}`;
  const [first] = reason;
  const result = (element: 'failure' | 'error' | 'skipped', message: string) => ({
    output: null,
    result: { element, message, text: reason.join('\n') },
  });
  if (hasOwnWord(node)) return result('skipped', node.verdict);
  switch (node.verdict) {
    case 'success':
      return { result: null, output: null };
    case 'warned':
      return { result: null, output: `warning: ${rows ?? 'the test did not pass'}` };
    case 'failed':
      if (node.freshness !== null)
        return result('failure', `source is stale${first === undefined ? '' : `: ${first}`}`);
      if (node.diffTable !== null) return result('failure', 'expected and actual rows differ');
      // A test whose query failed counts as one with a failing row: its message is the reason.
      return result('failure', first ?? rows ?? 'failed');
    case 'error':
      return result('error', first ?? 'error');
    case 'skipped':
      return result('skipped', node.skipUpstream ?? node.skipReason ?? 'skipped');
    case 'canceled':
      return result('skipped', nodeWord('canceled'));
    default:
      return result('error', nodeWord('unfinished'));
  }
}

function caseXml({ name, classname, path, line, shareNano, result, output }: TestCase): string {
  const attributes = {
    name,
    classname,
    ...(path === null ? {} : { file: path }),
    ...(line === null ? {} : { line: String(line) }),
    time: seconds(Number(shareNano) / 1e6),
  };
  const inside = [
    ...(result === null
      ? []
      : [
          element(
            result.element,
            { message: result.message, ...(result.element === 'skipped' ? {} : { type: result.element }) },
            escaped(result.text),
          ),
        ]),
    ...(output === null ? [] : [element('system-out', {}, escaped(output))]),
  ];
  return element('testcase', attributes, inside.join(''));
}

function lengthMs({ command: { invocation } }: CommandReport): number {
  return commandLengthMs(invocation);
}

function seconds(ms: number): string {
  return (ms / 1_000).toFixed(3);
}

/** @param content of XML. @param lineBreak behind the start tag */
function element(name: string, attributes: Readonly<Record<string, string>>, content: string, lineBreak = ''): string {
  const list = Object.entries(attributes).map(([key, value]) => ` ${key}="${escaped(value)}"`);
  return `<${name}${list.join('')}>${lineBreak}${content}</${name}>\n`;
}

const ENTITIES: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  '\n': '&#10;',
  '\t': '&#9;',
};

function escaped(text: string): string {
  return cleanText(text).replaceAll(/[&<>"\n\t]/g, (found) => ENTITIES[found] ?? found);
}
