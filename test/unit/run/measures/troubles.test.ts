import { describe, expect, test } from 'vitest';
import { problemLines } from '../../../../src/report/text.js';
import type { NodeMeasure } from '../../../../src/run/measures/node-measure.js';
import type { CommandMeasures } from '../../../../src/run/measures/run-totals.js';
import { readableLines, retryCommand, selectCommand, troublesOf } from '../../../../src/run/measures/troubles.js';
import { casesOf, recordedErrors, traceOfCase } from '../../../tool/error-runs.js';
import { loggedLines, readLog } from '../../export/mapping/read-sample.js';
import { measuresOf, nodeOf, sampleMeasures } from './sample-measures.js';

const CSV_ERROR = 'Arrow error: Csv error: incorrect number of fields for line 20, expected 4 got 6';

/** A command in which only these nodes of `build-mixed` did not go well, the first of them without a message. */
async function silent(messages: readonly string[], ...failed: readonly string[]): Promise<CommandMeasures> {
  const command = await sampleMeasures('build-mixed');
  const nodes = command.nodes
    .filter(({ uniqueId, verdict }) => verdict === 'success' || failed.includes(uniqueId))
    .map((node): NodeMeasure => (node.uniqueId === failed[0] ? { ...node, verdict: 'error', message: null } : node));
  return { ...command, hooks: [], nodes, messages };
}

const titles = (command: CommandMeasures) => troublesOf(command).map(({ title }) => title);

describe('an error without a node', () => {
  test('is that of the one node that failed without a message', async () => {
    const command = await silent([CSV_ERROR], 'seed.shop.raw_orders');
    const [section, ...others] = troublesOf(command);
    expect(others).toEqual([]);
    expect(section?.troubles).toMatchObject([{ label: 'seed raw_orders', reason: [CSV_ERROR] }]);
    expect(problemLines(command).join('\n')).toMatch(
      /^\nfailed with an error:\n {2}seed\.shop\.raw_orders \(.*\): Arrow error: .*$/,
    );
  });

  test.each([
    ['there are two', [CSV_ERROR, 'another'], ['seed.shop.raw_orders']],
    ['it says where it is', ['bad\n  --> models/a.sql:2:6'], ['seed.shop.raw_orders']],
    ['two nodes failed', [CSV_ERROR], ['seed.shop.raw_orders', 'model.shop.broken']],
    ['the node has a message', [CSV_ERROR], ['', 'model.shop.broken']],
  ])('stays one of the run where %s', async (_, messages, failed) => {
    expect(titles(await silent(messages, ...failed))).toEqual([
      expect.stringContaining('failed with an error'),
      expect.stringMatching(/errors? of the run$/),
    ]);
  });
});

test.each(['interrupted', 'fail-fast'])('that a command was cut short is no error of it: %s', async (sample) => {
  expect(titles(await sampleMeasures(sample))).not.toContainEqual(expect.stringMatching(/errors? of the run$/));
});

describe('a hook that failed', () => {
  const CAUSES = { duckdb: 'Table with name NAME does not exist', postgres: 'relation "NAME" does not exist' };

  test.each([
    ['duckdb', 'run_start_hook', 'run_log_x'],
    ['duckdb', 'run_end_hook', 'run_log_y'],
    ['postgres', 'run_start_hook', 'run_log_x'],
    ['postgres', 'run_end_hook', 'run_log_y'],
  ] as const)('is named with its cause, once: %s, %s', async (database, name, relation) => {
    const one = casesOf(database).find((each) => each.name === name);
    const traceId = one === undefined ? '' : traceOfCase(one);
    const log = loggedLines(recordedErrors(database)).filter(({ record }) => record.traceId === traceId);
    const [command] = await measuresOf(log);
    if (command === undefined) throw new Error('no command was measured');
    const [section, ...others] = troublesOf(command).filter(({ severity }) => severity === 'error');
    expect(others).toEqual([]);
    expect(section?.title).toBe('1 hook did not succeed');
    const label = `operation.shop.shop-on-run-${name === 'run_start_hook' ? 'start' : 'end'}-0`;
    const cause = CAUSES[database].replace('NAME', relation);
    expect(section?.troubles).toMatchObject([{ label }]);
    expect(section?.troubles[0]?.reason[0]).toContain(cause);
    const lines = problemLines(command);
    expect(lines.slice(0, 3)).toEqual(['', 'hooks that did not succeed:', expect.stringContaining(cause)]);
    expect(lines.join('\n')).not.toContain('other errors');
  });
});

describe('the lines of an error', () => {
  // As the engine sends them, of run-operation and of show --inline; the last ones with their values redacted.
  const MISSING = 'Catalog Error: Table with name nowhere does not exist!';
  test.each([
    [`${MISSING}\n\nLINE 3:     select * from nowhere\n            ^\n(in :1:32)\n  --> :1:32`],
    [
      `Internal: ${MISSING}\n\nLINE 3: select * from nowhere\n        ^ (sqlstate: [0, 0, 0, 0, 0], vendor_code: -2147483648)`,
    ],
    [`${MISSING}\nLINE 3: select * from nowhere\n(in :?)`],
    [`Internal: ${MISSING}\nLINE 3: select * from nowhere\n  ^ (sqlstate: [?], vendor_code: -?)`],
  ])('are its cause, without places in compiled code and codes: %s', (text) => {
    expect(readableLines(text)).toEqual([MISSING, 'LINE 3: select * from nowhere']);
  });

  test('of an operation begin with what its macro raised', () => {
    const text =
      'Failed to run operation invalid operation: Compilation Error: on purpose\nand more\n(in :1:23)\n  --> :1:23';
    expect(readableLines(text)).toEqual(['on purpose', 'and more']);
  });
});

describe('versions of a model', () => {
  const versions = async () => {
    const [command] = await measuresOf(readLog('versions/otel.jsonl'));
    if (command === undefined) throw new Error('no command was measured');
    return command;
  };

  test('are told apart by their labels, and so are unit tests of them', async () => {
    const sections = troublesOf(await versions());
    expect(sections.flatMap(({ troubles }) => troubles)).toMatchObject([
      { label: 'model fact.v2', skipped: ['model uses'] },
      { label: 'unit test dim_is_b.v1', skipped: ['model dim.v1', 'test unique_dim_v1_id'] },
    ]);
  });

  test('are selected one by one, and as what a unit test is of', async () => {
    const command = await versions();
    expect(retryCommand(command)).toBe('dbt build --select dim.v1+ fact.v2+');
    // The engine knows a unit test by its name alone.
    const failed = command.nodes.filter(({ verdict }) => verdict === 'failed');
    expect(selectCommand({ ...command.invocation, command: 'test' }, failed)).toBe('dbt test --select dim_is_b');
  });
});

describe('the command that tries again', () => {
  test('makes what a failed test tests, what was skipped behind it, and the model of a unit test', async () => {
    const command = await sampleMeasures('build-mixed');
    const id = nodeOf(command, 'test.shop.status_strict.0c25ec6282').uniqueId;
    const nodes = command.nodes
      .filter(({ uniqueId }) => uniqueId !== 'model.shop.broken')
      .map((node) => (node.uniqueId === 'model.shop.after_broken' ? { ...node, skipUpstream: id } : node));
    expect(retryCommand(command)).toBe('dbt build --select broken+ ut_target+ 1+status_strict');
    expect(retryCommand({ ...command, nodes })).toBe('dbt build --select ut_target+ 1+status_strict after_broken');
  });

  test('names the tests alone where the command only tests', async () => {
    const { invocation, nodes } = await sampleMeasures('build-mixed');
    const failed = nodes.filter(({ verdict }) => verdict === 'failed');
    expect(selectCommand({ ...invocation, command: 'test' }, failed)).toBe('dbt test --select ut_wrong status_strict');
  });
});
