import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { KnownNames } from '../../../../src/exporter/redaction/known-names.js';
import { ProseCache } from '../../../../src/exporter/redaction/prose-cache.js';
import { firstSafeWords, sanitizeProse } from '../../../../src/exporter/redaction/sanitize-prose.js';
import { TextCache } from '../../../../src/exporter/redaction/text-cache.js';

const word = fc.constantFrom(
  'orders',
  'secret',
  'shop_eu',
  'error',
  'column',
  '4711',
  'a1',
  'models/orders.sql',
  '"orders"',
);
const text = fc
  .array(fc.tuple(word, fc.constantFrom(' ', ': ', "'", ', "', '\n', '.')), { maxLength: 8 })
  .map((parts) => parts.flat().join(''));
const step = fc.oneof(
  text.map((shown) => ({ shown })),
  word.map((learned) => ({ learned })),
);

describe('remembered texts', () => {
  it.each([
    ['literals', sanitizeProse],
    ['statements', firstSafeWords],
  ] as const)(
    'read as if each were sanitized anew at level %s, whatever was learned in between',
    (_level, sanitize) => {
      fc.assert(
        fc.property(fc.array(step, { maxLength: 40 }), (steps) => {
          const names = new KnownNames();
          const cache = new ProseCache(names, sanitize);
          for (const one of steps) {
            if ('learned' in one) names.learn(one.learned);
            else expect(cache.show(one.shown).shown).toBe(sanitize(one.shown, names));
          }
        }),
      );
    },
  );
});

describe('the cache of texts', () => {
  it('forgets what was not asked for when it is full, and keeps what was', () => {
    const cache = new TextCache<number>(700, 100);
    cache.set('kept', 1);
    cache.set('lost', 2);
    for (let index = 0; index < 60; index++) {
      cache.set(`text ${index}`, index);
      expect(cache.get('kept')).toBe(1);
    }
    expect(cache.get('lost')).toBeUndefined();
  });

  it('does not remember texts that are longer than its limit', () => {
    const cache = new TextCache<number>(1000, 10);
    cache.set('x'.repeat(11), 1);
    expect(cache.get('x'.repeat(11))).toBeUndefined();
  });
});
