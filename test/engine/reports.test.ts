import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { runInProcess } from '../fake/run-in-process.js';
import { SMALL_SAMPLES, sampleFolder } from '../fake/sample-run.js';
import { hostileLines } from '../tool/hostile-run.js';
import { LARGE_SAMPLES } from '../tool/large-samples.js';
import { pythonWith } from '../tool/python-venv.js';

const READ = `
import json, sys
from junitparser import JUnitXml, Failure, Error, Skipped
suites = []
for suite in JUnitXml.fromfile(sys.argv[1]):
    kinds = [type(result[0]).__name__.lower() if (result := case.result) else 'passed' for case in suite]
    counts = {'failure': suite.failures, 'error': suite.errors, 'skipped': suite.skipped}
    suites.append({'name': suite.name, 'tests': suite.tests, 'kinds': kinds, 'counts': counts, 'names': [case.name for case in suite]})
print(json.dumps(suites))
`;

interface Suite {
  readonly name: string;
  readonly tests: number;
  readonly kinds: readonly string[];
  readonly counts: Readonly<Record<string, number>>;
  readonly names: readonly string[];
}

interface Node {
  readonly node_type: string;
  readonly verdict: string;
}

let dir: string;
let python: string;
beforeAll(() => {
  dir = mkdtempSync(join(tmpdir(), 'run-bridge-junit-'));
  python = pythonWith('junitparser');
  writeFileSync(join(dir, 'hostile.jsonl'), `${hostileLines().join('\n')}\n`);
});
afterAll(() => rmSync(dir, { recursive: true, force: true }));

const SAMPLES = [...SMALL_SAMPLES, ...LARGE_SAMPLES];

test.each([...SAMPLES, 'hostile'])('a published parser finds the tests of %s with their results', async (name) => {
  const file = name === 'hostile' ? 'hostile.jsonl' : resolve(sampleFolder(name), 'otel.jsonl');
  const report = async (format: string) => {
    const { exitCode, stdout } = await runInProcess(['report', file, '--format', format, '--redaction', 'off'], dir);
    expect(exitCode).toBe(0);
    return stdout;
  };
  writeFileSync(join(dir, 'junit.xml'), await report('junit'));
  const found: readonly Suite[] = JSON.parse(
    execFileSync(python, ['-c', READ, join(dir, 'junit.xml')], { encoding: 'utf8' }),
  );
  // What failed and is no test has a suite of its own, behind the command's.
  const suites = found.filter(({ name }) => !name.endsWith(': errors'));
  const others = found.filter(({ name }) => name.endsWith(': errors'));
  // An error, a stale source, or a node that was interrupted.
  for (const { kinds } of others) for (const kind of kinds) expect(['error', 'failure', 'skipped']).toContain(kind);
  const { commands }: { commands: readonly { command: string; nodes: readonly Node[] }[] } = JSON.parse(
    await report('json'),
  );
  expect(suites).toHaveLength(commands.length);
  for (const [index, { command, nodes }] of commands.entries()) {
    // What a compile has done with a test is no result of it.
    const isTested = command === 'build' || command === 'test';
    const tests = nodes.filter(({ node_type }) => isTested && (node_type === 'test' || node_type === 'unit_test'));
    const having = (...verdicts: string[]) => tests.filter(({ verdict }) => verdicts.includes(verdict)).length;
    const { tests: count, kinds = [], counts = {} } = suites[index] ?? {};
    expect([count, kinds.length]).toEqual([tests.length, tests.length]);
    const expected = {
      failure: having('failed'),
      error: having('error', 'unfinished'),
      skipped: having('skipped', 'canceled'),
    };
    expect(counts).toEqual(expected);
    for (const [kind, of] of Object.entries(expected)) expect(kinds.filter((one) => one === kind)).toHaveLength(of);
    expect(kinds.filter((one) => one === 'passed')).toHaveLength(having('success', 'warned'));
  }
});
