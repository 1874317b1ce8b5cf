import { expect, test } from 'vitest';
import { OutputTail } from '../../../src/job/launcher.js';

const tailOf = (maxBytes: number, ...chunks: string[]) => {
  const tail = new OutputTail(maxBytes);
  for (const chunk of chunks) tail.add(Buffer.from(chunk));
  return tail;
};

test('output that finds room is kept whole', () => {
  const tail = tailOf(10, 'one\n', 'two', '…');
  expect(tail.text).toBe('one\ntwo…');
  expect(tail.droppedBytes).toBe(0);
});

test('of more the end is kept, from the beginning of a line on', () => {
  const tail = tailOf(10, 'first\nsec', 'ond\n', 'third\n', 'x');
  expect(tail.text).toBe('third\nx');
  expect(tail.droppedBytes).toBe(10);
});

test('of one endless line the end is kept', () => {
  expect(tailOf(4, 'abcdefgh').text).toBe('efgh');
  expect(tailOf(4, 'abcdefg\n').text).toBe('efg\n');
});

test('memory stays bounded, however much comes', () => {
  const tail = new OutputTail(1_000);
  for (let count = 0; count < 10_000; count++) tail.add(Buffer.from(`line ${count}\n`));
  expect(tail.text.startsWith('line 9')).toBe(true);
  expect(tail.text.endsWith('line 9999\n')).toBe(true);
  expect(tail.text.length).toBeLessThanOrEqual(1_000);
});
