import { describe, expect, it } from 'vitest';
import { cut } from '../../../src/core/text.js';

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
