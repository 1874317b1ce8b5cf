import fc from 'fast-check';
import { expect, it } from 'vitest';
import { TextTable } from '../../../../src/exporter/lines/text-table.js';

function lookUp(table: TextTable, text: string, mark = false): string {
  const bytes = Buffer.from(`..${text}..`, 'latin1');
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  return table.textOf(bytes, view, 2, 2 + text.length, mark);
}

it('a text is what its bytes spell, however many others there are', () => {
  const table = new TextTable();
  const text = fc.string({ unit: fc.constantFrom('a', 'b', '0'), maxLength: 9 });
  fc.assert(
    fc.property(text, (one) => lookUp(table, one) === one),
    { numRuns: 3000 },
  );
});

it('texts are right after so many that it had to forget', () => {
  const table = new TextTable(7);
  for (let number = 0; number < 40_000; number++) expect(lookUp(table, `text ${number}`)).toBe(`text ${number}`);
  expect(lookUp(table, 'x'.repeat(300))).toBe('x'.repeat(300));
});

it('says of a text whether it was marked before', () => {
  const table = new TextTable();
  lookUp(table, 'orders');
  lookUp(table, 'orders', true);
  expect(table.wasMarked).toBe(false);
  lookUp(table, 'orders', true);
  expect(table.wasMarked).toBe(true);
  lookUp(table, 'customers', true);
  expect(table.wasMarked).toBe(false);
});
