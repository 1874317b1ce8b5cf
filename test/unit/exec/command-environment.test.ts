import { expect, test } from 'vitest';
import { readEngineSwitches } from '../../../src/exec/command-environment.js';

test('reads flags in either spelling, before variables', () => {
  const command = ['dbt', 'build', '--otel-file-name', 'a.jsonl', '--log-path=here', '--project-dir', 'p'];
  expect(readEngineSwitches(command, { DBT_OTEL_FILE_NAME: 'b.jsonl', DBT_LOG_PATH: 'there' })).toEqual({
    fileName: 'a.jsonl',
    logPath: 'here',
    projectDir: 'p',
    hasOwnTrace: false,
  });
});

test('reads variables, of which an empty one counts as unset', () => {
  expect(readEngineSwitches(['make'], { DBT_OTEL_FILE_NAME: 'b.jsonl', DBT_LOG_PATH: '' })).toEqual({
    fileName: 'b.jsonl',
    logPath: undefined,
    projectDir: undefined,
    hasOwnTrace: false,
  });
});

test('takes the last of a repeated flag, as the engine does', () => {
  expect(readEngineSwitches(['dbt', '--log-path', 'a', '--log-path=b'], {}).logPath).toBe('b');
});

test.each([
  [['dbt', 'build', '--invocation-id', 'x'], {}],
  [['dbt', 'build'], { DBT_INVOCATION_ID: 'x' }],
  [['dbt', 'build'], { DBT_PARENT_SPAN_ID: 'x' }],
])('sees that the trace was chosen: %j %j', (command, environment) => {
  expect(readEngineSwitches(command, environment).hasOwnTrace).toBe(true);
});
