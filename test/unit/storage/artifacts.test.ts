import { join } from 'node:path';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { parseArtifactPath } from '../../../src/storage/artifacts.js';

describe("an artifact's path", () => {
  it.each([
    'manifest.json',
    'compiled/shop/models/orders.sql',
    'a b/ä.sql',
    '.hidden',
    'a..b/...',
    '100%/x+y',
    '%2e%2e/x',
  ])('may be %j', (text) => expect(parseArtifactPath(text)).toBe(text));

  it.each([
    '',
    '/',
    '/etc/passwd',
    '.',
    '..',
    '../x',
    'a/../b',
    'a/..',
    'a/./b',
    'a//b',
    'a/',
    'a\\b',
    '..\\x',
    'a\0b',
    'a\nb',
    'a\x7fb',
    'a\u0085b',
    'a\u2028b',
    'a\u202eb',
    '\ud800',
    'x'.repeat(241),
    'ä'.repeat(121),
    `${`${'x'.repeat(200)}/`.repeat(4)}x`,
    `${'a/'.repeat(32)}a`,
  ])('cannot be %j', (text) => expect(parseArtifactPath(text)).toBeUndefined());

  it('never leads out of its folder', () => {
    const names = fc.array(fc.constantFrom('.', '..', 'a', '', '/', '\\', '~', '%2e', '\0', 'b c'), { maxLength: 6 });
    fc.assert(
      fc.property(names, (parts) => {
        const path = parseArtifactPath(parts.join('/'));
        if (path !== undefined) expect(join('/base/step', path)).toBe(`/base/step/${path}`);
      }),
    );
  });
});
