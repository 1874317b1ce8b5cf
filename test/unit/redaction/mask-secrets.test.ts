import { expect, test } from 'vitest';
import { maskSecrets } from '../../../src/redaction/mask-secrets.js';

test('values of variables that are named like secrets are not shown', () => {
  const environment = { DBT_PASSWORD: 'hunter22', API_TOKEN: 'hunter22-longer', DBT_TARGET: 'production' };
  expect(maskSecrets('hunter22 hunter22-longer in production', environment)).toBe('**** **** in production');
});

test('of a secret of several lines no line is shown', () => {
  const environment = { PRIVATE_KEY: '-----BEGIN-----\nMIIEvQIBADANBg\n-----END-----' };
  expect(maskSecrets('at MIIEvQIBADANBg:', environment)).toBe('at ****:');
});

test('passwords in URLs are not shown', () => {
  expect(maskSecrets('to postgres://me:pa55@db:5432/x', {})).toBe('to postgres://me:****@db:5432/x');
});

test('what is short, or where a secret lies, is no secret', () => {
  const environment = { TOKEN: 'abc', SSH_AUTH_SOCK: '/tmp/agent.sock', SECRET: undefined };
  expect(maskSecrets('abc /tmp/agent.sock', environment)).toBe('abc /tmp/agent.sock');
});
