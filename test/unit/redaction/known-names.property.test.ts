import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { REGION } from '../../../src/record/arena.js';
import { texts } from '../../../src/record/texts.js';
import { KnownNames, Learned, LearnedTexts, MAX_KNOWN_WORDS } from '../../../src/redaction/known-names.js';
import { currentWords, Words, wordsAt } from '../../../src/redaction/words.js';
import { propertyRuns } from '../../tool/property-runs.js';
import { knownText, putInArena } from '../../tool/statements.js';

/** What a run knows, as sets of texts. */
class NameSets {
  readonly words = new Set<string>();
  readonly identifiers = new Set<string>();

  learn(name: string): void {
    for (const word of name.match(/[\p{L}\p{N}\p{M}_$]+/gu) ?? [])
      if (!/^[\p{N}_$]+$/u.test(word)) this.words.add(word);
  }

  learnIdentifier(word: string): void {
    if (word.length <= 300 && word.isWellFormed()) this.identifiers.add(word);
  }

  get size(): number {
    return this.words.size + this.identifiers.size;
  }
}

const part = fc.oneof(
  fc.constantFrom(
    'orders',
    'shop',
    'a',
    'é',
    'naïve',
    '中',
    '\u0301',
    '42',
    '4_2',
    '$1',
    'x$',
    '😀',
    '𝒳',
    '\ud83d',
    '.',
    '/',
    ' ',
  ),
  fc.constantFrom('Orders', 'select', 'model.', 'x'.repeat(300), 'x'.repeat(301), '\0', '\u007f', '\u0080'),
  fc.string({ maxLength: 6, unit: 'binary' }),
);
const name = fc.array(part, { maxLength: 5 }).map((parts) => parts.join(''));
const step = fc.tuple(
  fc.constantFrom('learn', 'learnDirectly', 'bytes', 'otherTable', 'identifier', 'number', 'otherNumber'),
  name,
);

describe('the names of a run', () => {
  it('are those that sets of texts would have, from texts and from bytes, of whatever table', () => {
    fc.assert(
      fc.property(fc.array(step, { maxLength: 30 }), name, (steps, another) => {
        const other = new Words();
        const names = new KnownNames();
        const sets = new NameSets();
        const asked = new Set([another]);
        for (const [way, text] of steps) {
          if (way === 'identifier' || way === 'number' || way === 'otherNumber') {
            const words = way === 'number' ? currentWords() : other;
            if (way === 'identifier') names.learnIdentifier(text);
            else names.learnIdentifiers({ words, numbers: [words.numberOf(text)] });
            sets.learnIdentifier(text);
          } else {
            const end = way === 'bytes' || way === 'otherTable' ? putInArena(text, 'x') : 0;
            if (end === 0) names[way === 'learn' ? 'learn' : 'learnDirectly'](text);
            else
              names.learnWords(wordsAt(REGION.bodies, end - REGION.bodies, way === 'bytes' ? currentWords() : other));
            // What stands in bytes has no half characters.
            sets.learn(end === 0 ? text : text.toWellFormed());
          }
          for (const word of [text, ...text.split(/[./ ]/), text.toUpperCase(), `${text}x`]) asked.add(word);
          expect(names.size).toBe(sets.size);
        }
        for (const word of asked) {
          expect([word, names.has(word)]).toEqual([word, sets.words.has(word)]);
          const isKnown = sets.words.has(word) || sets.identifiers.has(word);
          expect([word, names.hasOutsideQuotes(word)]).toEqual([word, isKnown]);
        }
        const lists = names.lists();
        expect([...lists.words].sort()).toEqual([...sets.words].sort());
        expect([...lists.identifiers].sort()).toEqual([...sets.identifiers].sort());
      }),
      { numRuns: propertyRuns(1200) },
    );
  });

  it('are kept when words get their numbers from a new table, and are learned from both', () => {
    const names = new KnownNames();
    names.learn('model.shop.orders');
    const before = currentWords();
    const old = wordsAt(REGION.bodies, putInArena('seed.old_one') - REGION.bodies, before);
    for (let index = 0; before.hasRoom; index++) before.numberOf(`word_${index}`);
    const after = currentWords();
    expect(after).not.toBe(before);
    names.learnWords(wordsAt(REGION.bodies, putInArena('orders.new_one') - REGION.bodies, after));
    names.learnWords(old);
    names.learnIdentifiers({ words: after, numbers: [after.numberOf('customer_id')] });
    names.learn('late_one');
    const asked = ['orders', 'new_one', 'old_one', 'late_one', 'customer_id', 'word_1'];
    expect(asked.map((word) => names.has(word))).toEqual([true, true, true, true, false, false]);
    expect(names.hasOutsideQuotes('customer_id')).toBe(true);
    expect(names.lists()).toEqual({
      words: expect.arrayContaining(['model', 'shop', 'orders', 'new_one', 'old_one', 'late_one']),
      identifiers: ['customer_id'],
    });
    expect(names.size).toBe(8);
  });

  it('are learned up to the limit, and the words of a name all or none', () => {
    const names = new KnownNames();
    for (let index = 1; index < MAX_KNOWN_WORDS; index++) names.learn(`word_${index}`);
    names.learn('last.but_whole');
    expect(names.size).toBe(MAX_KNOWN_WORDS + 1);
    names.learn('too_many');
    names.learnWords(wordsAt(REGION.bodies, putInArena('far_too_many') - REGION.bodies, currentWords()));
    expect(['word_1', 'but_whole', 'too_many', 'far_too_many'].map((word) => names.has(word))).toEqual([
      true,
      true,
      false,
      false,
    ]);
  });

  it('have no words that are longer than any text that is shown', () => {
    const names = new KnownNames();
    const longest = 'é'.repeat(16_384);
    names.learn(`${longest}.${longest}x.${'y'.repeat(16_385)}`);
    names.learnWords(
      wordsAt(REGION.bodies, putInArena(`${'z'.repeat(16_385)} ${'z'.repeat(16_384)}`) - REGION.bodies, currentWords()),
    );
    expect(names.lists().words).toEqual([longest, 'z'.repeat(16_384)]);
  });
});

describe('a text that taught a run', () => {
  it('is not new to it for what it taught, until the texts are forgotten', () => {
    texts.forgetAll();
    const taught = new LearnedTexts();
    for (let index = 0; index < 2000; index++) knownText(`other ${index}`);
    const text = knownText('model.shop.orders');
    expect([taught.isNew(text, Learned.words), taught.isNew(text, Learned.words)]).toEqual([true, false]);
    expect([taught.isNew(text, Learned.identifiers), taught.isNew(text, Learned.identifiers)]).toEqual([true, false]);
    expect(taught.isNew(knownText('other 7'), Learned.words)).toBe(true);
    texts.forgetAll();
    for (let index = 0; index < 2000; index++) knownText(`another ${index}`);
    const again = knownText('something else');
    expect(again.number).toBe(text.number);
    expect([taught.isNew(again, Learned.words), taught.isNew(again, Learned.words)]).toEqual([true, false]);
  });

  it('is always new where it is not remembered', () => {
    const taught = new LearnedTexts();
    const text = knownText('x'.repeat(64 * 1024 + 1));
    expect([taught.isNew(text, Learned.words), taught.isNew(text, Learned.words)]).toEqual([true, true]);
  });
});
