import { describe, expect, test } from 'vitest';
import type { JobDefinition } from '../../../src/config/jobs.js';
import { commandsOfRun } from '../../../src/config/run-commands.js';

const job = (given: Partial<JobDefinition>): JobDefinition => ({
  ...{ name: 'a', id: null, match: [], project: null, environment: null, variables: {}, workingDir: '/' },
  ...{ targetName: null, threads: null, timeoutMs: null, expectMs: null, takesOtherSteps: true },
  commands: [['dbt', 'build']],
  ...given,
});
const planned = (steps: readonly string[] | null, given: Partial<JobDefinition> = {}) => {
  const run = commandsOfRun(job(given), steps);
  return 'problem' in run ? run.problem : run.commands;
};

test("a run without steps of its own does the job's commands, whatever they are", () => {
  const commands = [['sh', '-c', 'dbt build | tee x']];
  expect(planned(null, { commands, takesOtherSteps: false })).toEqual(commands);
});

describe('a step', () => {
  test.each([
    ['dbt parse', 'parse'],
    ['dbt ls --resource-type model --exclude-resource-type=test', null],
    ['dbt source freshness -s source:raw', null],
    ['dbt docs generate --no-write-json', null],
    ['dbt --warn-error --no-use-colors build -x --exclude=tag:slow --threads 4', null],
    ['dbt build --event-time-start 2026-01-01 --event-time-end=2026-01-02 --full-refresh=true', null],
    // The name of a command behind a flag is its value.
    ['dbt test --select run-operation', null],
  ])('has a command and flags of the engine: %s', (line, words) => {
    expect(planned([line])).toEqual([['dbt', ...(words ?? line.slice(4)).split(' ')]]);
  });

  test("is run by the job's own engine", () => {
    const commands = [['./prepare'], ['/opt/engine/dbt', 'seed'], ['dbt', 'build']];
    expect(planned(['dbt parse', '/opt/engine/dbt compile'], { commands })).toEqual([
      ['/opt/engine/dbt', 'parse'],
      ['/opt/engine/dbt', 'compile'],
    ]);
  });

  test("has the project, profile, target and folders of the job's first command, and no other flag of it", () => {
    const words = ['-t', 'prod', '--full-refresh', '--profiles-dir=conf', '--select', 'a', '--project-dir', 'shop'];
    const kept = ['-t', 'prod', '--profiles-dir=conf', '--project-dir', 'shop'];
    expect(planned(['dbt parse'], { commands: [['dbt', 'build', ...words]] })).toEqual([['dbt', 'parse', ...kept]]);
    expect(planned(['dbt parse'], { commands: [['dbt', 'build', '-tprod', '--state=old']] })).toEqual([
      ['dbt', 'parse', '-tprod', '--state=old'],
    ]);
  });

  test('may have a flag and its value quoted as one word, as Dagster writes it', () => {
    expect(planned([`dbt build --select 'fqn:a fqn:b' '--indirect-selection empty'`])).toEqual([
      ['dbt', 'build', '--select', 'fqn:a fqn:b', '--indirect-selection', 'empty'],
    ]);
    expect(planned([`dbt build '--target prod'`])).toMatch(/^Step 1 of steps_override has --target, /);
  });

  test.each(
    [
      ...['--target prod', '--target=prod', '-t prod', '-tprod', '-qtprod', '--profile other', '--profiles-dir=/x'],
      ...['--project-dir ..', '--target-path /x', '--log-path=/x', '--packages-install-path x', '--state /x'],
      ...['--defer-state=/x', '--otel-file-name x', '--otel-parquet-file-name=x', '--metadata-dir /x', '--index-dir=x'],
      ...['--invocation-id 1', '--parent-span-id 1', '--compute sidecar', '--host 0.0.0.0', '--port=1', '-- x', '-'],
      ...[
        '--with-sample /etc/passwd',
        "--inline 'select 1'",
        '--add-package x',
        '--output /x',
        '-o /x',
        '--upgrade',
        '--no-target',
      ],
    ].map((flags) => [`dbt build --select a ${flags}`]),
  )('has no flag that names a file, a place or a text to run: %s', (line) => {
    expect(planned([line])).toMatch(/^Step 1 of steps_override has -\S*, which only commands of the configuration may/);
  });

  test.each([
    ...['dbt', 'dbt --quiet', 'dbt run-operation grant', 'dbt show --select a', 'dbt init', 'dbt clean'],
    ...['dbt system update', 'dbt docs serve', 'dbt docs', 'dbt source', 'dbt retry', 'dbt debug', 'dbt BUILD'],
    // What the engine would take for the command here stands behind the value of a flag.
    ...['dbt --select build run-operation x', 'dbt --threads run run-operation x', 'dbt --quiet=build init'],
    ...["dbt 'build --select a'", "dbt ''"],
  ])('has no other command: %s', (line) => {
    expect(planned([line])).toMatch(/^Step 1 of steps_override has no command that is allowed there \(build, clone, /);
  });

  test.each([
    'touch x',
    './dbt build',
    '/bin/dbt build',
    'dbtf build',
    'uv run dbt build',
    "'dbt build'",
    'dbt.exe parse',
  ])('is no other program: %s', (line) => {
    expect(planned([line])).toMatch(/^Step 1 of steps_override does not begin with dbt: /);
  });

  test.each([
    [
      'dbt build; touch x',
      'has a ; outside of single quotes, and no shell runs it; quote it, or make it commands of their own: dbt build;',
    ],
    ['dbt build --vars "$(id)"', 'has a $ outside'],
    ["dbt build --select 'a", "has a ' that is not closed"],
    ['DBT_TARGET=prod dbt build', 'begins with DBT_TARGET='],
    ['dbt build --select a\0b', 'contains a zero byte'],
    ['', 'has no program'],
  ])('needs no shell: %j', (line, problem) => {
    expect(planned(['dbt seed', line])).toContain(`Step 2 of steps_override ${problem}`);
  });
});

test('there are a hundred steps at most, and what is repeated of one is bounded', () => {
  expect(planned(Array.from({ length: 100 }, () => 'dbt parse'))).toHaveLength(100);
  expect(planned(Array.from({ length: 101 }, () => 'dbt parse'))).toBe('steps_override has more than 100 steps.');
  expect(planned([`sh ${'x'.repeat(60_000)}`])).toHaveLength(
    'Step 1 of steps_override does not begin with dbt: '.length + 81,
  );
  expect(planned([`dbt build --${'x'.repeat(60_000)}`])).toSatisfy(({ length }: string) => length < 300);
});

test('a job that does not say so, or has no engine, takes none', () => {
  const refusal = /^The job "a" takes no steps_override: .*"steps-override: true"/;
  expect(planned(['dbt build'], { takesOtherSteps: false })).toMatch(refusal);
  expect(planned(['dbt build'], { commands: [['sh', '-c', 'dbt build']] })).toMatch(refusal);
});
