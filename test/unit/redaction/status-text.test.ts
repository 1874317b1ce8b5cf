import { expect, test } from 'vitest';
import { Redactor, statusText } from '../../../src/redaction/redactor.js';

const redactor = new Redactor('literals');

test.each([
  'The command ended with exit code 3',
  'The command ended with exit code 137 (as a shell says of a command killed by SIGKILL)',
  'The command was killed by SIGTERM',
  'The command ended in an unknown way',
  '2 nodes failed',
  '1 error',
  'The command was killed by SIGKILL; 12 nodes had not ended',
  'The command was killed by SIGKILL; no node was running',
  'The command ended with exit code 143 (as a shell says of a command killed by SIGTERM), though its telemetry tells of no failure',
  'No end was seen: the engine was killed, or its last telemetry was lost; 1 node had not ended; the command ended inside a command that went on',
  'No end was seen: the program that ran the command has gone without reporting how it ended',
  'no end seen',
  '2 nodes failed; the command ended with exit code 0, the end of its telemetry was not seen',
  'Interrupted: 2 nodes canceled, 3 not finished; the command was killed by SIGINT',
  'The process ended without the end of its invocation span: 3 nodes not finished',
  'The process ended before any command began',
  'The command could not be started (no-such-command: command not found)',
  'The command could not be started (dbt: cannot be run: permission denied; is it an executable file?)',
  'The run was canceled',
  'The run was cancelled',
])('what the bridge says of itself is shown: %s', (own) => {
  expect(statusText(own, redactor)).toBe(own);
});

test('its parts that come from elsewhere are redacted', () => {
  expect(statusText('Stopped by fail-fast after model.shop.orders failed: 3 nodes canceled', redactor)).toBe(
    `Stopped by fail-fast after ${redactor.text('model.shop.orders')} failed: 3 nodes canceled`,
  );
  expect(statusText("The command could not be started ('a secret': command not found)", redactor)).toBe(
    'The command could not be started (?: command not found)',
  );
  expect(statusText("The command could not be started (it is 'a secret')", redactor)).not.toContain('a secret');
});

test.each([
  "[InvalidConfig (dbt1005)]: target 'nosuch' not found in profile 'shop'",
  "target 'my-target' not found in profile 'shop_2'",
  "[IoError (dbt1001)]: Profile 'gone_profile' not found in profiles.yml",
  "Profile 'gone_profile' not found in profiles.yml",
])('names of the configuration are shown: %s', (message) => {
  expect(redactor.text(message)).toBe(message);
});

test('takes no longer for a text that is much like it', () => {
  const text = `${'Stopped by fail-fast after x failed: '.repeat(54)}!`;
  expect(statusText(text, redactor)).not.toBe('');
});

test("what the engine says before it is redacted all the same, and so is what only looks like the bridge's", () => {
  const text = "Value 'a secret' is wrong; the command ended with exit code 1";
  expect(statusText(text, redactor)).toBe(
    `${redactor.text("Value 'a secret' is wrong")}; the command ended with exit code 1`,
  );
  expect(statusText(text, redactor)).not.toContain('a secret');
  const like = "The command ended with exit code 1 'a secret'";
  expect(statusText(like, redactor)).toBe(redactor.text(like));
  expect(statusText(like, redactor)).not.toContain('a secret');
});
