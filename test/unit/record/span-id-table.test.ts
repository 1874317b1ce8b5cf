import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { SpanIdTable } from '../../../src/record/span-id-table.js';
import { type SpanId, spanIdFromUint64 } from '../../../src/record/telemetry-record.js';

const spanId = fc
  .bigInt({ min: 1n, max: 2n ** 64n - 1n })
  .map((value) => spanIdFromUint64(value))
  .filter((id): id is SpanId => id !== undefined);
const value = fc.integer({ min: 0, max: 2 ** 32 - 2 });

describe('a table by span id', () => {
  it('holds what a Map would hold, whatever its seed', () => {
    fc.assert(
      fc.property(fc.array(fc.tuple(spanId, value), { maxLength: 500 }), fc.nat(), (entries, seed) => {
        const table = new SpanIdTable(seed);
        for (const [id, number] of entries) table.set(id, number);
        const map = new Map(entries);
        expect(table.size).toBe(map.size);
        for (const [id, number] of map) expect(table.get(id)).toBe(number);
      }),
    );
  });

  it('holds what a Map would hold that ids are removed from, too', () => {
    // Of few ids, so that most are set, removed and set again.
    const step = fc.tuple(fc.integer({ min: 0, max: 60 }), fc.boolean());
    fc.assert(
      fc.property(fc.array(step, { maxLength: 400 }), fc.nat(), (steps, seed) => {
        const table = new SpanIdTable(seed);
        const map = new Map<number, number>();
        for (const [number, [low, isRemoval]] of steps.entries()) {
          if (isRemoval) table.deleteHalves(-1, low);
          else table.setHalves(-1, low, number);
          if (isRemoval) map.delete(low);
          else map.set(low, number);
        }
        expect(table.size).toBe(map.size);
        for (let low = 0; low <= 60; low++) expect(table.getHalves(-1, low)).toBe(map.get(low));
        expect(Array.from(table.values()).sort()).toEqual(Array.from(map.values()).sort());
      }),
    );
  });

  it('does not know ids that were never set', () => {
    const table = new SpanIdTable();
    for (let id = 1n; id <= 1000n; id++) table.set(spanIdFromUint64(id) as SpanId, Number(id));
    for (let id = 1001n; id <= 2000n; id++) expect(table.get(spanIdFromUint64(id) as SpanId)).toBeUndefined();
  });
});
