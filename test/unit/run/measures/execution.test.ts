import { describe, expect, it } from 'vitest';
import { commandWord } from '../../../../src/run/measures/execution.js';
import { endsFailures, type JudgedRun, recoveryOf } from '../../../../src/run/measures/recovery.js';
import { sampleMeasures } from './sample-measures.js';

describe('what a command executed', () => {
  it.each([
    ['build-mixed', 17],
    ['build-mixed-fusion', 17],
    ['stale-source', 1],
    ['compile', 0],
    ['show', 0],
    ['parse', 0],
  ])('of the sample %s are %d nodes', async (sample, count) => {
    const { nodes } = await sampleMeasures(sample);
    expect(nodes.filter(({ isExecuted }) => isExecuted)).toHaveLength(count);
  });

  it('is nothing that was skipped, interrupted or never ended', async () => {
    for (const sample of ['build-mixed', 'interrupted', 'fail-fast']) {
      const { nodes } = await sampleMeasures(sample);
      const verdicts = new Set(nodes.filter(({ isExecuted }) => isExecuted).map(({ verdict }) => verdict));
      for (const verdict of ['skipped', 'canceled', 'unfinished']) expect([...verdicts]).not.toContain(verdict);
    }
  });

  it('is named by the command of its line', () => {
    expect(commandWord('dbt --quiet --target prod build --select x')).toBe('build');
    expect(commandWord('/usr/bin/dbt docs generate')).toBe('docs');
    expect(commandWord('make all')).toBeNull();
    expect(commandWord('dbt --log-level debug build')).toBe('build');
    expect(commandWord('dbt --target test compile')).toBe('compile');
    expect(commandWord('dbt -t run --profile docs parse')).toBe('parse');
    expect(commandWord('dbt --target=test --select build show')).toBe('show');
    expect(commandWord('uv run dbt compile')).toBe('compile');
  });
});

describe('a recovery', () => {
  const run = (line: string, failed: readonly string[] | null, good: readonly string[] = []): JudgedRun => ({
    isSuccess: failed === null,
    commandLines: [line],
    digests: [{ failed: failed ?? [], good, scope: { command: commandWord(line) } }],
  });
  const nodes = (...ids: readonly string[]) => new Set(ids);
  const failed = run('dbt build', ['a', 'b', 'c']);

  it('needs that what failed has run and succeeded', () => {
    const whole = run('dbt build', null, ['a', 'b', 'c', 'd']);
    expect(recoveryOf(whole, nodes('a', 'b', 'c', 'd'), [failed])).toEqual({ count: 3, ofCount: 3 });
    const compiled = run('dbt compile', null);
    expect(recoveryOf(compiled, nodes('a', 'b', 'c'), [failed])).toEqual({ count: 0, ofCount: 3 });
    const part = run('dbt build --select a d', null, ['a', 'd']);
    expect(recoveryOf(part, nodes('a', 'd'), [failed])).toEqual({ count: 1, ofCount: 3 });
  });

  it('is that of what had not recovered before, over runs that leave it open', () => {
    const part = run('dbt build --select a', null, ['a']);
    const compiled = run('dbt compile', null);
    const rest = run('dbt build --select b c', null, ['b', 'c']);
    expect(recoveryOf(rest, nodes('b', 'c'), [compiled, part, failed])).toEqual({ count: 2, ofCount: 2 });
    expect(recoveryOf(part, nodes('a'), [rest, part, failed])).toBeNull();
  });

  it('is none behind a success of the same commands, and does not wait for what these have no more', () => {
    const good = run('dbt build', null, ['a', 'b', 'c']);
    expect(recoveryOf(good, nodes('a', 'b', 'c'), [good, failed])).toBeNull();
    expect(recoveryOf(run('dbt build', null, ['a', 'b']), nodes('a', 'b'), [failed])).toEqual({ count: 2, ofCount: 2 });
  });

  it('of an error of no node is a success of the same command, or of one that executes nodes', () => {
    const parse = run('dbt parse', []);
    expect(recoveryOf(run('dbt parse', null), nodes(), [parse])).toEqual({ count: 1, ofCount: 1 });
    expect(recoveryOf(run('dbt build', null, ['a']), nodes('a'), [parse])).toEqual({ count: 1, ofCount: 1 });
    const build = run('dbt build', []);
    expect(recoveryOf(run('dbt compile', null), nodes(), [build])).toEqual({ count: 0, ofCount: 1 });
  });

  it('is none of what read no rows, which ends no failure either', () => {
    const empty = run('dbt build --empty', null, []);
    expect(recoveryOf(empty, nodes('a', 'b', 'c'), [failed])).toEqual({ count: 0, ofCount: 3 });
    expect(endsFailures(empty, failed)).toBe(false);
    expect(endsFailures(run('dbt build', null, ['a', 'b', 'c']), failed)).toBe(true);
  });

  it('goes by the commands that the telemetry names, before those that were typed', () => {
    const of = (command: string, one: JudgedRun): JudgedRun => ({
      ...one,
      commandLines: ['./nightly.sh run'],
      digests: one.digests?.map((digest) => ({ ...digest, scope: { command } })),
    });
    const parse = of('parse', run('', []));
    expect(recoveryOf(of('parse', run('', null)), nodes(), [parse])).toEqual({ count: 1, ofCount: 1 });
    expect(recoveryOf(of('build', run('', null)), nodes(), [parse])).toEqual({ count: 1, ofCount: 1 });
    expect(recoveryOf(of('parse', run('', null)), nodes(), [of('build', run('', []))])?.count).toBe(0);
  });
});
