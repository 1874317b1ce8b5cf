import { copy, isSame } from '../bytes';
import { PENDING, RUN_BITS, RUN_COUNT, SEEN_SLOTS, SEEN_TEXTS, SEEN_TEXTS_END, SLOT_COUNT } from './memory-map';
import { hashOf } from './text-hash';

// Names that runs were taught, and nodes of which JavaScript has seen all that spans say of them, so that it need not look
// at them again. Texts are kept once for all runs, which mostly have the same; each run has two bits for each of them. When
// there are too many texts, all are forgotten, and when there are too many runs, the one that was added first: they are taught
// anew then.

/** A slot's numbers: the upper half of the hash, where the text stands, its length, its number plus one; all 0 where it is free. */
const SLOT_BYTES: u32 = 16;
const MAX_TEXTS: u32 = SLOT_COUNT / 2;
const MAX_PROBES: u32 = 16;
/** Numbers of a text that is not kept yet: where it stands, its length, its kind. */
const PENDING_BYTES: u32 = 12;
/** Longer ones are taught each time. */
const MAX_LENGTH: u32 = 256;

/** The kinds of texts: a run's bit for a text is that of twice its number plus its kind. */
export const IS_NAME: u32 = 0;
export const IS_NODE: u32 = 1;
/** A run's bits, behind them the run's number. */
const RUN_BYTES: u32 = (2 * MAX_TEXTS) / 8 + 16;
const NUMBER_AT: u32 = RUN_BYTES - 16;

let bits: u32 = RUN_BITS;
let nextRun: u32 = 0;
let count: u32 = 0;
let free: u32 = SEEN_TEXTS;
let pendingCount: u32 = 0;

/** Texts that are seen from now on are of this run; not 0. */
export function setRun(number: u32): void {
  for (let run: u32 = 0; run < RUN_COUNT; run++) {
    bits = RUN_BITS + run * RUN_BYTES;
    if (load<u32>(bits + NUMBER_AT) == number) return;
  }
  bits = RUN_BITS + nextRun * RUN_BYTES;
  nextRun = (nextRun + 1) % RUN_COUNT;
  memory.fill(bits, 0, RUN_BYTES);
  store<u32>(bits + NUMBER_AT, number);
}

/** Begins a line. */
@inline
export function beginNames(): void {
  pendingCount = 0;
}

/** Whether the run was taught this text. One that it was not is, once the line is read and `keepNames` is called. */
export function isSeen(at: usize, length: u32, kind: u32): bool {
  if (length > MAX_LENGTH) return false;
  const slot = slotOf(at, length, hashOf(0, at, length));
  if (slot != 0) {
    const number = load<u32>(slot + 12);
    if (number != 0 && isBitSet(2 * (number - 1) + kind)) return true;
  }
  const pending = PENDING + PENDING_BYTES * pendingCount;
  store<u32>(pending, <u32>at);
  store<u32>(pending + 4, length);
  store<u32>(pending + 8, kind);
  pendingCount++;
  return false;
}

/** JavaScript is given the line, and with it the texts that `isSeen` did not know. */
export function keepNames(): void {
  for (let index: u32 = 0; index < pendingCount; index++) {
    const pending = PENDING + PENDING_BYTES * index;
    keep(load<u32>(pending), load<u32>(pending + 4), load<u32>(pending + 8));
  }
}

function keep(at: u32, length: u32, kind: u32): void {
  if (count >= MAX_TEXTS || free + length + 16 > SEEN_TEXTS_END) forgetAll();
  const hash = hashOf(0, at, length);
  const slot = slotOf(at, length, hash);
  if (slot == 0) return;
  if (load<u32>(slot + 12) == 0) {
    store<u32>(slot, <u32>(hash >> 32));
    store<u32>(slot + 4, free);
    store<u32>(slot + 8, length);
    store<u32>(slot + 12, ++count);
    copy(free, at, length);
    free += length;
  }
  setBit(2 * (load<u32>(slot + 12) - 1) + kind);
}

/** The slot of a text, or a free one for it; 0 where others have its places. */
@inline
function slotOf(at: usize, length: u32, hash: u64): u32 {
  let slot = <u32>hash % SLOT_COUNT;
  for (let probe: u32 = 0; probe < MAX_PROBES; probe++) {
    const entry = SEEN_SLOTS + slot * SLOT_BYTES;
    if (load<u32>(entry + 12) == 0) return entry;
    if (load<u32>(entry) == <u32>(hash >> 32) && load<u32>(entry + 8) == length) {
      if (isSame(load<u32>(entry + 4), at, length)) return entry;
    }
    slot = (slot + 1) % SLOT_COUNT;
  }
  return 0;
}

@inline
function isBitSet(bit: u32): bool {
  return ((load<u32>(bits + 4 * (bit >> 5)) >> (bit & 31)) & 1) != 0;
}

@inline
function setBit(bit: u32): void {
  const at = bits + 4 * (bit >> 5);
  const one: u32 = 1;
  store<u32>(at, load<u32>(at) | (one << (bit & 31)));
}

/** All texts of all runs; the bits are those of other texts from now on. */
function forgetAll(): void {
  memory.fill(SEEN_SLOTS, 0, SLOT_COUNT * SLOT_BYTES);
  for (let run: u32 = 0; run < RUN_COUNT; run++) memory.fill(RUN_BITS + run * RUN_BYTES, 0, NUMBER_AT);
  count = 0;
  free = SEEN_TEXTS;
}
