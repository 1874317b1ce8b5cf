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
])('what the bridge says of itself is shown: %s', (own) => {
  expect(statusText(own, redactor)).toBe(own);
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
