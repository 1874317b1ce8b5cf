import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { joinCommandLine, splitCommandLine } from '../../../src/config/jobs.js';

const wordsOf = (line: string) => {
  const split = splitCommandLine(line);
  return 'words' in split ? split.words : split.problem;
};

test('words are distinguished by blanks, and quotes keep them together', () => {
  expect(wordsOf('  dbt build\t--select tag:nightly+ ')).toEqual(['dbt', 'build', '--select', 'tag:nightly+']);
  expect(wordsOf(`dbt run --vars '{"day": "$today"}'`)).toEqual(['dbt', 'run', '--vars', '{"day": "$today"}']);
  expect(wordsOf(`echo "a \\"b\\" \\\\ \\n" c\\ d''`)).toEqual(['echo', 'a "b" \\ \\n', 'c d']);
  expect(wordsOf(`echo '' "" a''b`)).toEqual(['echo', '', '', 'ab']);
  expect(wordsOf('dbt run \\\n  --full-refresh')).toEqual(['dbt', 'run', '--full-refresh']);
});

test("patterns that engines have a meaning for stay as they are: no shell fills in files' names", () => {
  expect(wordsOf('dbt ls -s path:models/* source:?[ab] {a,b} a#b a~b')).toEqual([
    'dbt',
    'ls',
    '-s',
    'path:models/*',
    'source:?[ab]',
    '{a,b}',
    'a#b',
    'a~b',
  ]);
});

describe('what only a shell could do is refused', () => {
  test.each([
    'dbt seed && dbt run',
    'dbt run; rm x',
    'dbt run | tee x',
    'dbt run > x',
    'dbt run < x',
    'dbt run &',
    'echo $HOME',
    'echo "$HOME"',
    'echo `id`',
    'echo "`id`"',
    'echo $(id)',
    '(dbt run)',
    'dbt run # all',
    'cat ~/x',
  ])('%s', (line) => {
    expect(wordsOf(line)).toMatch(/^has a . outside of single quotes, and no shell runs it; /);
  });

  test('variables in front of a command', () => {
    expect(wordsOf('DBT_TARGET=prod dbt run')).toBe('begins with DBT_TARGET=, and no shell runs it; set it under env:');
  });
});

test.each([
  ['', 'has no program'],
  ['   ', 'has no program'],
  ["'' build", 'has no program'],
  ["dbt 'build", "has a ' that is not closed"],
  ['dbt "build', 'has a " that is not closed'],
  ['dbt build \\', 'ends with a backslash'],
  ['dbt \0', 'contains a zero byte, which is not possible in an argument'],
])('%j is no command', (line, problem) => {
  expect(wordsOf(line)).toBe(problem);
});

test('joined words are split into the same words', () => {
  const words = fc.tuple(
    fc.stringMatching(/^[a-z/]{1,8}$/),
    fc.array(fc.string().filter((word) => !word.includes('\0'))),
  );
  fc.assert(
    fc.property(words, ([program, args]) => {
      expect(wordsOf(joinCommandLine([program, ...args]))).toEqual([program, ...args]);
    }),
  );
});
