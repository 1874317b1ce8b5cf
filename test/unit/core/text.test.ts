import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { cleanLine, cleanText, cut, distinctTexts, harmlessJson, visibleText } from '../../../src/core/text.js';
import { STILL_ACTIVE } from '../../tool/hostile-run.js';

describe('a text that is cut', () => {
  it.each([
    ['abc', 3, 'abc'],
    ['abcd', 3, 'ab…'],
    ['a👍b', 4, 'a👍b'],
    ['a👍bc', 4, 'a👍…'],
    ['a👍bc', 3, 'a…'],
    ['👍👍', 2, '…'],
    ['a\nb\nc', 4, 'a\nb…'],
  ])('has at most so many units, and no half of a character: %j in %i', (text, maxLength, expected) => {
    const short = cut(text, maxLength);
    expect(short).toBe(expected);
    expect(short.isWellFormed()).toBe(true);
  });
});

describe('texts that are shortened', () => {
  const shortened = (...texts: readonly string[]) => texts.map((text) => distinctTexts(texts, 27).get(text));

  it('keep their starts and ends, and stay as they are where there is room', () => {
    expect(shortened('mart_118', 'stg_orders_of_the_year_before_last')).toEqual([
      'mart_118',
      'stg_orders_of…r_before_last',
    ]);
  });

  it('stay different where they differ in the middle', () => {
    const test = (model: string) => `test accepted_values_${model}_status__paid__open`;
    expect(shortened(test('stg_36'), test('stg_37'))).toEqual([
      'test a…_stg_36_st…aid__open',
      'test a…_stg_37_st…aid__open',
    ]);
    const [one, other] = shortened(`${'😀'.repeat(30)}a${'x'.repeat(40)}`, `${'😀'.repeat(30)}b${'x'.repeat(40)}`);
    expect(one).not.toBe(other);
    expect(one).toMatch(/^😀{6}…/u);
  });

  it('are no longer than asked for', () => {
    fc.assert(
      fc.property(
        fc.array(fc.string({ unit: 'grapheme', maxLength: 80 })),
        fc.integer({ min: 17, max: 60 }),
        (texts, max) => {
          for (const [text, short] of distinctTexts(texts, max)) {
            expect(Array.from(short).length).toBeLessThanOrEqual(max);
            if (Array.from(text).length <= max) expect(short).toBe(text);
          }
        },
      ),
    );
  });
});

describe('a text of others', () => {
  const parts = [
    '::',
    ':',
    '##',
    '#',
    '[',
    'vso',
    'teamcity',
    'section_start',
    'section_end',
    '1',
    ' ',
    '\n',
    '\t',
    '\r',
    '\r\n',
    '"',
    '\\',
  ];
  const seldom = [
    '\u001b[0K',
    '\u009b',
    '\u0085',
    '\u2028',
    '\u202e',
    '\u2069',
    '\u200b',
    '\u200d',
    '\ufeff',
    '\u00ad',
    '\u{e0041}',
    'é',
    '👩',
    'x',
  ];
  const texts = fc.array(fc.constantFrom(...parts, ...seldom)).map((some) => some.join(''));

  it('does nothing in a log, however often it is cleaned', () => {
    fc.assert(
      fc.property(texts, (text) => {
        const clean = cleanText(text);
        expect(clean).not.toMatch(STILL_ACTIVE);
        expect(cleanText(clean)).toBe(clean);
        expect(cleanLine(text)).not.toMatch(STILL_ACTIVE);
      }),
    );
  });

  it('does nothing as JSON, which says the same', () => {
    fc.assert(
      fc.property(texts, (text) => {
        const value = { [text]: [text, { text }] };
        for (const json of [JSON.stringify(value), JSON.stringify(value, null, 2)]) {
          expect(harmlessJson(json)).not.toMatch(STILL_ACTIVE);
          expect(JSON.parse(harmlessJson(json))).toEqual(value);
        }
      }),
    );
  });

  it.each([
    ['a\u202eb\u2066c\u200fd', 'a\\u202eb\\u2066c\\u200fd'],
    ['\u001b[31mred\u0007\u0000', '\\u001b[31mred\\u0007\\u0000'],
    ['one\r\ntwo\tthree', 'one\ntwo\tthree'],
    ['\u{e0041}', '\\udb40\\udc41'],
    ['ab\u200dc', 'ab\\u200dc'],
    ['می\u200cخواهم 👩\u200d👧 ❤️\u200d🔥 é ۝', 'می\u200cخواهم 👩\u200d👧 ❤️\u200d🔥 é ۝'],
  ])('is shown with what cannot be seen: %j', (text, shown) => {
    expect(visibleText(text)).toBe(shown);
  });
});
