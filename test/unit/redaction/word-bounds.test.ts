import { describe, expect, test } from 'vitest';
import { wordEnd, wordStart } from '../../../src/redaction/vocabulary.js';

function wordsOf(text: string): string[] {
  const words: string[] = [];
  for (let end = 0, start = wordStart(text, 0); start < text.length; start = wordStart(text, end)) {
    end = wordEnd(text, start);
    words.push(text.slice(start, end));
  }
  return words;
}

describe('words of a text', () => {
  test('are runs of letters, digits, marks, underscores and dollar signs', () => {
    expect(wordsOf('model.shop.orders_v2 ("a$b")')).toEqual(['model', 'shop', 'orders_v2', 'a$b']);
    expect(wordsOf('größe, Ünïcode e\u0301tat; 表.列')).toEqual(['größe', 'Ünïcode', 'e\u0301tat', '表', '列']);
    expect(wordsOf('')).toEqual([]);
    expect(wordsOf('… → ?')).toEqual([]);
  });

  test('are those that a pattern finds, whatever the characters, half ones too', () => {
    const parts = [
      'a',
      'Z',
      '7',
      '_',
      '$',
      ' ',
      '.',
      '-',
      '\n',
      '\u0000',
      '\u007f',
      'é',
      '\u0301',
      '—',
      '𝒳',
      '😀',
      '\ud83d',
      '\ude00',
    ];
    for (let seed = 0; seed < 20_000; seed++) {
      let text = '';
      for (let rest = seed * 7919 + 1; rest > 0; rest = Math.floor(rest / parts.length))
        text += parts[rest % parts.length];
      expect(wordsOf(text)).toEqual(text.match(/[\p{L}\p{N}\p{M}_$]+/gu) ?? []);
    }
  });
});
