import type { SpanId } from '../../record/ids.js';

/** A span id as two 32-bit integers with a sign, the more significant half first. */
export type IdHalves = readonly [high: number, low: number];

/** The halves of a span id. */
export function halvesOf(id: SpanId): IdHalves {
  return [highOf(id), lowOf(id)];
}

/** The more significant half of a span id, as a 32-bit integer with a sign: one without would be an object to V8 as often as not. */
function highOf(id: SpanId): number {
  return Number.parseInt(id.slice(0, 8), 16) | 0;
}

/** The less significant half. */
function lowOf(id: SpanId): number {
  return Number.parseInt(id.slice(8), 16) | 0;
}

/** The span id of two halves, as 32-bit integers with a sign or without. */
export function spanIdOf(high: number, low: number): SpanId {
  // Two halves in hexadecimal are what every SpanId is.
  return (eightDigits(high) + eightDigits(low)) as SpanId;
}

function eightDigits(half: number): string {
  return (half >>> 0).toString(16).padStart(8, '0');
}
