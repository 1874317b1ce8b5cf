import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { ByteSource, HashSlots, hashOfBytes, isSameBytes } from '../../../src/core/bytes.js';

/** Numbers keys as its owners do. */
function numberOf(slots: HashSlots, keys: number[], key: number, hash: number): number {
  for (let entry = slots.seek(hash); entry >= 0; entry = slots.next()) if (keys[entry] === key) return entry;
  keys.push(key);
  return slots.add();
}

describe('HashSlots', () => {
  it('numbers keys from 0 on in their order, whatever their hashes, as a Map would', () => {
    fc.assert(
      fc.property(fc.array(fc.nat(200), { maxLength: 400 }), fc.integer({ min: 1, max: 1000 }), (wanted, spread) => {
        const slots = new HashSlots();
        const keys: number[] = [];
        const expected = new Map<number, number>();
        for (const key of wanted) {
          if (!expected.has(key)) expected.set(key, expected.size);
          expect(numberOf(slots, keys, key, (key % spread) - 20)).toBe(expected.get(key));
        }
        expect(slots.count).toBe(expected.size);
      }),
    );
  });

  it('numbers keys anew after it was cleared, however many there were before', () => {
    const slots = new HashSlots();
    for (const count of [1000, 3, 0, 2, 300, 1, 1, 1, 1, 1, 1, 1, 70]) {
      const keys: number[] = [];
      const numbers = Array.from({ length: 2 * count }, (_, at) => numberOf(slots, keys, at >> 1, (at >> 1) * 7919));
      expect(numbers).toEqual(Array.from({ length: 2 * count }, (_, at) => at >> 1));
      slots.clear();
    }
  });

  it('says that it is crowded when many keys have one hash, until it is cleared', () => {
    const slots = new HashSlots();
    const keys: number[] = [];
    for (let key = 0; key < 60; key++) numberOf(slots, keys, key, 7);
    expect(slots.isCrowded).toBe(false);
    for (let key = 60; key < 100; key++) numberOf(slots, keys, key, 7);
    expect(slots.isCrowded).toBe(true);
    slots.clear();
    expect([slots.isCrowded, slots.count, slots.seek(7)]).toEqual([false, 0, -1]);
  });
});

describe('bytes', () => {
  it('are the same, and have one hash, wherever they stand', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 20 }), fc.nat(9), fc.nat(9), (bytes, before, behind) => {
        const one = new ByteSource(Buffer.from([...Buffer.alloc(before, 1), ...bytes]));
        const other = new ByteSource(Buffer.from([...Buffer.alloc(behind, 2), ...bytes, 3]));
        expect(isSameBytes(one, before, other.bytes, other.view, behind, bytes.length)).toBe(true);
        expect(hashOfBytes(one.bytes, one.view, before, before + bytes.length, 5)).toBe(
          hashOfBytes(other.bytes, other.view, behind, behind + bytes.length, 5),
        );
      }),
    );
  });

  it('are different when one of them is', () => {
    fc.assert(
      fc.property(fc.uint8Array({ minLength: 1, maxLength: 20 }), fc.nat(19), (bytes, at) => {
        const other = new ByteSource(Buffer.from(bytes));
        const index = at % bytes.length;
        other.bytes[index] = (other.bytes[index] ?? 0) ^ 1;
        const known = new ByteSource(Buffer.from(bytes));
        expect(isSameBytes(known, 0, other.bytes, other.view, 0, bytes.length)).toBe(false);
      }),
    );
  });
});
