import { describe, expect, it } from 'vitest';
import { UNKNOWN_RESOURCE } from '../../../src/record/attributes.js';
import { type DeclaredScopes, type MatchRule, ScopeFinder } from '../../../src/run/scope-finder.js';

const NOTHING: DeclaredScopes = { jobs: [], environments: [], projects: [] };
const NONE = { id: null, match: [], project: null, environment: null };

function command(rawCommand: string | null, attributes: Record<string, string> = {}) {
  return { rawCommand, resource: { ...UNKNOWN_RESOURCE, attributes } };
}

describe('the place of a command', () => {
  it('is the job adhoc where nothing is said', () => {
    expect(new ScopeFinder(NOTHING).scopeOf(command('dbt build'))).toEqual({
      job: 'adhoc',
      environment: null,
      project: null,
    });
  });

  it('is what its resource says, before any rule', () => {
    const jobs = [{ ...NONE, name: 'all', match: [{ command: '*' }] }];
    const attributes = { 'run_bridge.job': 'nightly', 'run_bridge.environment': 'prod', 'run_bridge.project': ' ' };
    expect(new ScopeFinder({ ...NOTHING, jobs }).scopeOf(command('dbt build', attributes))).toEqual({
      job: 'nightly',
      environment: 'prod',
      project: null,
    });
  });

  it('is that of the first job that matches, with its environment and project', () => {
    const places: DeclaredScopes = {
      jobs: [
        { ...NONE, name: 'tests', match: [{ command: 'dbt test*' }] },
        { ...NONE, name: 'nightly', match: [{ command: 'dbt build*' }], environment: 'production' },
        { ...NONE, name: 'later', match: [{ command: 'dbt build*' }] },
      ],
      environments: [{ ...NONE, name: 'production', project: 'shop' }],
      projects: [],
    };
    expect(new ScopeFinder(places).scopeOf(command('dbt build --select a'))).toEqual({
      job: 'nightly',
      environment: 'production',
      project: 'shop',
    });
  });

  it.each([
    [{ command: 'dbt build' }, 'dbt build', true],
    [{ command: 'dbt build' }, 'dbt build -x', false],
    [{ command: 'dbt*--select*tag:a' }, 'dbt build --select tag:a', true],
    [{ command: '*ab*ab' }, 'ab', false],
    [{ command: '*' }, null, false],
    [{ target: 'prod*' }, 'dbt build --target prod_eu', true],
    [{ target: 'prod' }, 'dbt build --target=prod', true],
    [{ target: 'prod' }, 'dbt build -t prod', true],
    [{ target: 'prod' }, 'dbt build --target dev', false],
    [{ target: '*' }, 'dbt build', false],
    [{ resource: { team: 'a*' } }, 'dbt build', true],
    [{ resource: { team: 'b' } }, 'dbt build', false],
    [{ resource: { absent: '*' } }, 'dbt build', false],
    [{ command: 'dbt*', resource: { team: 'b' } }, 'dbt build', false],
  ] as const)('by the rule %j of %s: %s', (rule: MatchRule, text, isMatch) => {
    const jobs = [{ ...NONE, name: 'mine', match: [rule] }];
    const { job } = new ScopeFinder({ ...NOTHING, jobs }).scopeOf(command(text, { team: 'abc' }));
    expect(job === 'mine').toBe(isMatch);
  });

  it('is found at once on a long command line, however many stars the pattern has', () => {
    const jobs = [{ ...NONE, name: 'mine', match: [{ command: `${'*a'.repeat(2_000)}b` }] }];
    // Tried one by one, the ways in which the stars could fit would outlast any test.
    const { job } = new ScopeFinder({ ...NOTHING, jobs }).scopeOf(command('a'.repeat(100_000)));
    expect(job).not.toBe('mine');
  });
});
