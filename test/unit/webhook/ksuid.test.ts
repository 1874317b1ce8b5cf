import { expect, it } from 'vitest';
import { ksuid } from '../../../src/webhook/tables.js';

it('is the id that the original implementation gives for its example', () => {
  // https://github.com/segmentio/ksuid#inspecting-ksuids
  const payload = Buffer.from('B5A1CD34B5F99D1154FB6853345C9735', 'hex');
  expect(ksuid((107_608_047 + 1_400_000_000) * 1_000, () => payload)).toBe('0ujtsYcgvSTl8PAuAdqWYSMnLOv');
});

it('is 27 characters long also for the smallest and largest values, and sorts by its second', () => {
  const zero = ksuid(1_400_000_000_000, (count) => new Uint8Array(count));
  const later = ksuid(1_400_000_001_999, (count) => new Uint8Array(count));
  expect([zero, later > zero]).toEqual(['0'.repeat(27), true]);
  expect(ksuid((2 ** 32 - 1 + 1_400_000_000) * 1_000, (count) => new Uint8Array(count).fill(255))).toBe(
    'aWgEPTl1tmebfsQzFP4bxwgy80V',
  );
});
