import fc from 'fast-check';
import { expect, test } from 'vitest';
import { formatScopePath, parseScopePath, splitScope } from '../../../src/otlp/scope-path.js';

const NAME = fc
  .string({ unit: 'grapheme', minLength: 1, maxLength: 30 })
  .map((text) => text.trim())
  .filter((text) => text !== '' && !/[\p{Cc}\p{Zl}\p{Zp}]/u.test(text));
const SCOPE = fc.record({ job: NAME, environment: NAME, project: NAME }, { requiredKeys: [] });

test('what is written as a path is read as the same names', () => {
  fc.assert(
    fc.property(SCOPE, (scope) => {
      expect(parseScopePath(formatScopePath(scope))).toEqual(scope);
    }),
  );
});

test('an endpoint with names is the address of a bridge and these names, behind a path of a proxy, too', () => {
  const bases = fc.constantFrom(
    'http://127.0.0.1:4318',
    'https://job',
    'http://[::1]:4318',
    'http://a/otlp/v2',
    'http://a/job',
  );
  fc.assert(
    fc.property(bases, SCOPE, fc.constantFrom('', '/'), (baseUrl, scope, slash) => {
      if (Object.keys(scope).length === 0) return;
      expect(splitScope(`${baseUrl}${formatScopePath(scope)}${slash}`)).toEqual({ baseUrl, scope });
    }),
  );
});

test.each([
  '',
  'http://127.0.0.1:4318',
  'http://127.0.0.1:4318/',
  'http://job/nightly',
  'http://127.0.0.1:4318/job',
  'http://127.0.0.1:4318/job/',
  'http://127.0.0.1:4318/job/a/job/b',
  'http://127.0.0.1:4318/job/%zz',
  'http://127.0.0.1:4318/job/a?b=c',
  'http://127.0.0.1:4318/job/a/v1/traces',
  'no address/job/a',
])('%j is left as it is', (url) => {
  expect(splitScope(url)).toEqual({ baseUrl: url, scope: {} });
});
