import { CELLS_PER_SPAN } from './memory-map';

/** The numbers of a span, by their place; they are `CELL` of src/record/span-page.ts, in the order of this machine, little-endian. */
export const START_LINE: u32 = 0;
export const END_LINE: u32 = 1;
export const LINE_END: u32 = 2;
export const ID: u32 = 3;
export const PARENT: u32 = 5;
export const TYPE: u32 = 7;
export const START_TIME: u32 = 8;
export const END_TIME: u32 = 10;
export const NAME_START: u32 = 12;
export const NAME_END: u32 = 13;
export const LINK: u32 = 14;
export const IS_SPECIAL: u32 = 16;
export const STATUS_CODE: u32 = 23;

/** Where the cells of the span in hand begin. */
let cells: usize = 0;

export function beginCells(at: usize): void {
  cells = at;
  for (let done: u32 = 0; done < 4 * CELLS_PER_SPAN; done += 16) v128.store(at + done, i8x16.splat(0));
}

@inline
export function cell(which: u32): u32 {
  return load<u32>(cells + 4 * which);
}

@inline
export function setCell(which: u32, value: u32): void {
  store<u32>(cells + 4 * which, value);
}

/** An id as two numbers, the more significant one first. */
@inline
export function setId(which: u32, from: usize): void {
  setCell(which, bswap(load<u32>(from)));
  setCell(which + 1, bswap(load<u32>(from + 4)));
}

/** A time as one number of 64 bits. */
@inline
export function setTime(which: u32, time: u64): void {
  store<u64>(cells + 4 * which, time);
}
