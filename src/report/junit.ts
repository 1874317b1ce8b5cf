import type { NodeMeasure } from '../run/measures/node-measure.js';
import { labelOf } from '../run/measures/node-words.js';
import { troubleLocation, troublesOf } from '../run/measures/troubles.js';
import { hasOwnWord } from '../run/verdict.js';
import { type CommandReport, cleanText } from './content.js';

const TEST_TYPES: ReadonlySet<string | null> = new Set(['test', 'unit_test']);

/** What came of a test, in the words of JUnit. */
interface TestCase {
  readonly node: NodeMeasure;
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
 * was asked for. What else went wrong is the suite's `system-err`.
 */
export function junitReport(reports: readonly CommandReport[]): string {
  const suites = reports.map(suite);
  const sum = (count: (cases: readonly TestCase[]) => number) =>
    suites.reduce((total, { cases }) => total + count(cases), 0);
  const attributes = {
    name: 'run-bridge',
    ...countsOf(sum),
    time: seconds(reports.reduce((ms, report) => ms + lengthMs(report), 0)),
  };
  return `<?xml version="1.0" encoding="UTF-8"?>\n${element('testsuites', attributes, suites.map(({ xml }) => xml).join(''), '\n')}\n`;
}

function suite(report: CommandReport): { readonly xml: string; readonly cases: readonly TestCase[] } {
  const { command, traceId } = report;
  const { invocation } = command;
  const cases = command.nodes.filter(({ nodeType }) => TEST_TYPES.has(nodeType)).map(testCase);
  const name = invocation.rawCommand ?? invocation.command ?? 'command';
  const attributes = {
    name,
    ...countsOf((count) => count(cases)),
    time: seconds(lengthMs(report)),
    timestamp: new Date(Number(invocation.startTimeUnixNano / 1_000_000n)).toISOString().slice(0, 19),
    id: `${traceId}-${invocation.index}`,
  };
  const others = troublesOf(command)
    .filter(({ severity }) => severity === 'error')
    .flatMap(({ title, troubles }) => {
      const own = troubles.filter(({ node }) => node === null || !TEST_TYPES.has(node.nodeType));
      const lines = own.map((trouble) =>
        [trouble.label, troubleLocation(trouble), trouble.reason.join('\n')]
          .filter((part) => part !== null && part !== '')
          .join(': '),
      );
      return lines.length === 0 ? [] : [`${title}:`, ...lines];
    });
  const errors = others.length === 0 ? '' : element('system-err', {}, escaped(others.join('\n')));
  return { xml: element('testsuite', attributes, `${cases.map(caseXml).join('')}${errors}`, '\n'), cases };
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
  const result = (element: 'failure' | 'error' | 'skipped', message: string) => ({
    node,
    output: null,
    result: { element, message, text },
  });
  if (hasOwnWord(node)) return result('skipped', node.verdict);
  switch (node.verdict) {
    case 'success':
      return { node, result: null, output: null };
    case 'warned':
      return { node, result: null, output: `warning: ${rows ?? 'the test did not pass'}` };
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

function caseXml({ node, result, output }: TestCase): string {
  const { uniqueId, name, relativePath, definedAtLine, durationMs } = node;
  const attributes = {
    name: name ?? uniqueId,
    classname: relativePath ?? labelOf(node),
    ...(relativePath === null ? {} : { file: relativePath }),
    ...(definedAtLine === null ? {} : { line: String(definedAtLine) }),
    time: seconds(durationMs ?? 0),
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
