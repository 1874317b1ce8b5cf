import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { KnownNames, ProseCache, type Sanitize, SharedTexts, TextCache } from '../../../src/redaction/known-names.js';
import { Redactor } from '../../../src/redaction/redactor.js';
import { firstSafeWords, sanitizeProse } from '../../../src/redaction/sanitize-prose.js';

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
  word.map((identifier) => ({ identifier })),
);

const RUNS = 3;
const stepOfRun = fc.tuple(fc.nat(RUNS - 1), step);

describe('remembered texts', () => {
  it.each([
    ['literals', sanitizeProse],
    ['statements', firstSafeWords],
  ] as const)(
    'read as if each were sanitized anew at level %s, whatever was learned in between, and by other runs',
    (_level, sanitize) => {
      fc.assert(
        fc.property(fc.array(stepOfRun, { maxLength: 60 }), (steps) => {
          const shared = new SharedTexts();
          const runs = Array.from({ length: RUNS }, () => {
            const names = new KnownNames();
            return { names, cache: new ProseCache(names, sanitize, shared) };
          });
          for (const [number, one] of steps) {
            const run = runs[number];
            if ('learned' in one) run?.names.learn(one.learned);
            else if ('identifier' in one) run?.names.learnIdentifier(one.identifier);
            else expect(run?.cache.show(one.shown).shown).toBe(run && sanitize(one.shown, run.names));
          }
        }),
      );
    },
  );

  it('are made safe once for runs that know the same words of them', () => {
    let count = 0;
    const sanitize: Sanitize = (text, names) => {
      count += 1;
      return sanitizeProse(text, names);
    };
    const shared = new SharedTexts();
    const show = (text: string, ...known: string[]) => {
      const names = new KnownNames();
      for (const name of known) names.learn(name);
      return new ProseCache(names, sanitize, shared).show(text).shown;
    };
    expect(show('error in orders: secret', 'orders', 'shop')).toBe('error in orders: ?');
    expect(show('error in orders: secret', 'orders', 'other')).toBe('error in orders: ?');
    expect(count).toBe(1);
    expect(show('error in orders: secret')).toBe('error in ?');
    expect(show('error in orders: secret', 'secret', 'orders')).toBe('error in orders: secret');
    expect(count).toBe(3);
  });

  it('of one level are never shown at another', () => {
    const shared = new SharedTexts();
    const text = 'error: column "orders" is missing';
    const show = (level: 'literals' | 'statements') => new Redactor(level, new KnownNames(), shared).text(text);
    expect(show('literals')).not.toBe(show('statements'));
    expect(show('statements')).toBe(new Redactor('statements', new KnownNames()).text(text));
  });
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
