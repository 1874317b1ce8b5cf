import { copy, isSame } from '../bytes';
import { SHOWN_SLOTS, SHOWN_SLOT_COUNT, SHOWN_TEXT, SHOWN_TEXTS, SHOWN_TEXTS_END } from './memory-map';
import { hashOf } from './text-hash';

// How texts are shown that redaction decides on, as JavaScript said of each when it came first. A run's are its own.

/** A place in the table; all 0 where it is free. */
@unmanaged
export class ShownText {
  hash: u32;
  run: u32;
  /** By what rule it is shown. */
  treatment: u32;
  text: u32;
  length: u32;
  shown: u32;
  shownLength: u32;
  /** Its number with JavaScript, plus one, where it may be shown otherwise one day; else 0. */
  open: u32;
}

const FULL: u32 = 0;
const CROWDED: u32 = 1;
/** Longer texts are left to JavaScript. */
export const MAX_LENGTH: u32 = 256;

const SLOT_BYTES: u32 = 32;
const MAX_TEXTS: u32 = SHOWN_SLOT_COUNT / 2;
const MAX_PROBES: u32 = 32;

let run: u32 = 0;
let count: u32 = 0;
let free: u32 = SHOWN_TEXTS;

/** Texts that are looked for from now on are of this run; not 0. */
export function setTextRun(number: u32): void {
  run = number;
}

export function forgetTexts(): void {
  memory.fill(SHOWN_SLOTS, 0, SHOWN_SLOT_COUNT * SLOT_BYTES);
  count = 0;
  free = SHOWN_TEXTS;
}

/** How a text is shown; null where JavaScript was not asked yet. */
export function shownText(treatment: u32, at: usize, length: u32): ShownText | null {
  const hash = hashOf(run + treatment * 0x9e3779b1, at, length);
  let slot = <u32>hash % SHOWN_SLOT_COUNT;
  for (let probe: u32 = 0; probe < MAX_PROBES; probe++) {
    const entry = changetype<ShownText>(SHOWN_SLOTS + slot * SLOT_BYTES);
    if (entry.run == 0) return null;
    if (isOf(entry, hash, treatment, at, length)) return entry;
    slot = (slot + 1) % SHOWN_SLOT_COUNT;
  }
  return null;
}

/**
 * Remembers how a text is shown, in place of what was said before: by `shownLength` bytes at `SHOWN_TEXT`. Returns where it
 * stands; `FULL` when all have to be forgotten first, `CROWDED` when others have its places.
 */
export function keepShown(treatment: u32, at: u32, length: u32, shownLength: u32, open: u32): u32 {
  if (count >= MAX_TEXTS || free + length + shownLength + 32 > SHOWN_TEXTS_END) return FULL;
  const hash = hashOf(run + treatment * 0x9e3779b1, at, length);
  let slot = <u32>hash % SHOWN_SLOT_COUNT;
  for (let probe: u32 = 0; probe < MAX_PROBES; probe++) {
    const entry = changetype<ShownText>(SHOWN_SLOTS + slot * SLOT_BYTES);
    const isNew = entry.run == 0;
    if (isNew || isOf(entry, hash, treatment, at, length)) {
      if (isNew) {
        entry.hash = <u32>(hash >> 32);
        entry.run = run;
        entry.treatment = treatment;
        entry.length = length;
        entry.text = place(at, length);
        count++;
      }
      entry.shown = place(SHOWN_TEXT, shownLength);
      entry.shownLength = shownLength;
      entry.open = open;
      return <u32>changetype<usize>(entry);
    }
    slot = (slot + 1) % SHOWN_SLOT_COUNT;
  }
  return CROWDED;
}

@inline
function isOf(entry: ShownText, hash: u64, treatment: u32, at: usize, length: u32): bool {
  if (entry.hash != <u32>(hash >> 32) || entry.run != run || entry.length != length) return false;
  return entry.treatment == treatment && isSame(entry.text, at, length);
}

function place(at: u32, length: u32): u32 {
  const to = free;
  copy(to, at, length);
  free += length;
  return to;
}
