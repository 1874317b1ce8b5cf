import { cleanText } from '../core/text.js';
import type { NodeMeasure } from '../run/measures/node-measure.js';
import { labelOf, nameOf, type Trouble, troublesOf } from '../run/measures/troubles.js';
import { hasOwnWord } from '../run/verdict.js';
import type { CommandReport } from './content.js';

const TEST_TYPES: ReadonlySet<string | null> = new Set(['test', 'unit_test']);

/** A test, or something that failed, in the words of JUnit. */
interface TestCase {
  readonly name: string;
  readonly classname: string;
  /** The file of the project, and the line in it. */
  readonly path: string | null;
  readonly line: number | null;
  readonly durationMs: number;
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
 * was asked for; and, where something else went wrong, a suite behind it with a case for each of that.
 */
export function junitReport(reports: readonly CommandReport[]): string {
  const suites = reports.flatMap(suitesOf);
  const sum = (count: (cases: readonly TestCase[]) => number) =>
    suites.reduce((total, { cases }) => total + count(cases), 0);
  const attributes = {
    name: 'run-bridge',
    ...countsOf(sum),
    time: seconds(reports.reduce((ms, report) => ms + lengthMs(report), 0)),
  };
  return `<?xml version="1.0" encoding="UTF-8"?>\n${element('testsuites', attributes, suites.map(({ xml }) => xml).join(''), '\n')}\n`;
}

interface Suite {
  readonly xml: string;
  readonly cases: readonly TestCase[];
}

function suitesOf(report: CommandReport): readonly Suite[] {
  const { command, traceId } = report;
  const { invocation } = command;
  const cases = command.nodes.filter(({ nodeType }) => TEST_TYPES.has(nodeType)).map(testCase);
  const name = invocation.rawCommand ?? invocation.command ?? 'command';
  const common = {
    timestamp: new Date(Number(invocation.startTimeUnixNano / 1_000_000n)).toISOString().slice(0, 19),
  };
  const id = `${traceId}-${invocation.index}`;
  const others = troublesOf(command)
    .filter(({ severity }) => severity === 'error')
    .flatMap(({ title, troubles }) =>
      troubles
        .filter(({ node }) => node === null || !TEST_TYPES.has(node.nodeType))
        .map((trouble) => troubleCase(trouble, title)),
    );
  const tests = suiteOf({ ...common, id, time: seconds(lengthMs(report)) }, name, cases);
  if (others.length === 0) return [tests];
  // A suite of its own: the counts of the other one stay those of the tests.
  const otherMs = others.reduce((ms, { durationMs }) => ms + durationMs, 0);
  return [tests, suiteOf({ ...common, id: `${id}-errors`, time: seconds(otherMs) }, `${name}: errors`, others)];
}

function suiteOf(attributes: Readonly<Record<string, string>>, name: string, cases: readonly TestCase[]): Suite {
  const all = { name, ...countsOf((count) => count(cases)), ...attributes };
  return { xml: element('testsuite', all, cases.map(caseXml).join(''), '\n'), cases };
}

/** A failed model, hook or source, or an error of the run. */
function troubleCase({ label, node, path, line, reason }: Trouble, title: string): TestCase {
  const [first = title] = reason;
  return {
    name: label ?? title,
    classname: path ?? title,
    path,
    line,
    durationMs: node?.durationMs ?? 0,
    result: { element: 'error', message: first, text: reason.join('\n') },
    output: null,
  };
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

function testCase(node: NodeMeasure): TestCase {
  const text = [node.diffTable?.trimEnd() ?? null, node.message].filter((part) => part !== null).join('\n');
  const rows =
    node.failingRows === null ? null : `${node.failingRows} failing ${node.failingRows === 1 ? 'row' : 'rows'}`;
  const own = {
    name: nameOf(node) ?? node.uniqueId,
    classname: node.relativePath ?? labelOf(node),
    path: node.relativePath,
    line: node.definedAtLine,
    durationMs: node.durationMs ?? 0,
  };
  const result = (element: 'failure' | 'error' | 'skipped', message: string) => ({
    ...own,
    output: null,
    result: { element, message, text },
  });
  if (hasOwnWord(node)) return result('skipped', node.verdict);
  switch (node.verdict) {
    case 'success':
      return { ...own, result: null, output: null };
    case 'warned':
      return { ...own, result: null, output: `warning: ${rows ?? 'the test did not pass'}` };
    case 'failed':
      return result('failure', node.diffTable === null ? (rows ?? 'failed') : 'expected and actual rows differ');
    case 'error':
      return result('error', node.message?.split('\n', 1)[0] ?? 'error');
    case 'skipped':
      return result('skipped', node.skipUpstream ?? node.skipReason ?? 'skipped');
    case 'canceled':
      return result('skipped', 'canceled');
    default:
      return result('error', 'it did not finish');
  }
}

function caseXml({ name, classname, path, line, durationMs, result, output }: TestCase): string {
  const attributes = {
    name,
    classname,
    ...(path === null ? {} : { file: path }),
    ...(line === null ? {} : { line: String(line) }),
    time: seconds(durationMs),
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

function lengthMs({ command }: CommandReport): number {
  return Number(command.totals.lengthNano) / 1e6;
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
