import fc from 'fast-check';
import { expect, it } from 'vitest';
import { TaughtNames, TextTable } from '../../../../src/export/lines/event-mappings.js';

function lookUp(table: TextTable, text: string): string {
  const bytes = Buffer.from(`..${text}..`, 'latin1');
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  return table.textOf(bytes, view, 2, 2 + text.length);
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
  const table = new TextTable(undefined, undefined, 7);
  for (let number = 0; number < 40_000; number++) expect(lookUp(table, `text ${number}`)).toBe(`text ${number}`);
  expect(lookUp(table, 'x'.repeat(300))).toBe('x'.repeat(300));
});

it('each run is taught a name once, whatever other runs were taught', () => {
  const table = new TextTable();
  const runs = [new TaughtNames(table), new TaughtNames(table)];
  const isNew = (run: number, text: string) => {
    lookUp(table, text);
    return runs[run]?.isNew();
  };
  lookUp(table, 'orders');
  expect([isNew(0, 'orders'), isNew(0, 'orders'), isNew(1, 'orders'), isNew(0, 'customers')]).toEqual([
    true,
    false,
    true,
    true,
  ]);
  // Longer ones are not remembered.
  expect([isNew(0, 'x'.repeat(300)), isNew(0, 'x'.repeat(300))]).toEqual([true, true]);
  for (let number = 0; number < 5000; number++) expect(isNew(0, `text ${number}`)).toBe(true);
  expect(isNew(0, 'text 4999')).toBe(false);
  // So many that the table forgets: other texts have those numbers then.
  for (let number = 0; number < 20_000; number++) isNew(1, `other ${number}`);
  expect([isNew(0, 'orders'), isNew(0, 'orders')]).toEqual([true, false]);
});
