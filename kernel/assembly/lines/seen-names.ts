import { copy, isSame } from '../bytes';
import { PENDING, SEEN_SLOTS, SEEN_TEXTS, SEEN_TEXTS_END, SLOT_COUNT } from './memory-map';
import { hashOf } from './text-hash';

// Names that runs were taught, and nodes of which JavaScript has seen all that spans say of them, by their bytes, so that it
// need not look at them again. When there are too many, all are forgotten, and taught anew.

/** A slot's numbers: the upper half of the hash, where the text stands, its length, its run and kind; all 0 where it is free. */
const SLOT_BYTES: u32 = 16;
const MAX_NAMES: u32 = SLOT_COUNT / 2;
const MAX_PROBES: u32 = 16;
/** Numbers of a text that is not kept yet: where it stands, its length, its kind. */
const PENDING_BYTES: u32 = 12;
/** Longer ones are taught each time. */
const MAX_LENGTH: u32 = 256;

let run: u32 = 0;
let count: u32 = 0;
let free: u32 = SEEN_TEXTS;
let pendingCount: u32 = 0;

/** The kinds of texts. */
export const IS_NAME: u32 = 0;
export const IS_NODE: u32 = 1;

/** Texts that are seen from now on are of this run; not 0. */
export function setRun(number: u32): void {
  run = 2 * number;
}

/** Begins a line. */
@inline
export function beginNames(): void {
  pendingCount = 0;
}

/** Whether the run was taught this text. One that it was not is, once the line is read and `keepNames` is called. */
export function isSeen(at: usize, length: u32, kind: u32): bool {
  if (length > MAX_LENGTH) return false;
  const owner = run + kind;
  const hash = hashOf(owner, at, length);
  let slot = <u32>hash % SLOT_COUNT;
  for (let probe: u32 = 0; probe < MAX_PROBES; probe++) {
    const entry = SEEN_SLOTS + slot * SLOT_BYTES;
    const own = load<u32>(entry + 12);
    if (own == 0) break;
    if (own == owner && load<u32>(entry) == <u32>(hash >> 32) && load<u32>(entry + 8) == length) {
      if (isSame(load<u32>(entry + 4), at, length)) return true;
    }
    slot = (slot + 1) % SLOT_COUNT;
  }
  const pending = PENDING + PENDING_BYTES * pendingCount;
  store<u32>(pending, <u32>at);
  store<u32>(pending + 4, length);
  store<u32>(pending + 8, owner);
  pendingCount++;
  return false;
}

/** JavaScript is given the line, and with it the names that `isSeen` did not know. */
export function keepNames(): void {
  for (let index: u32 = 0; index < pendingCount; index++) {
    const pending = PENDING + PENDING_BYTES * index;
    keep(load<u32>(pending), load<u32>(pending + 4), load<u32>(pending + 8));
  }
}

function keep(at: u32, length: u32, owner: u32): void {
  if (count >= MAX_NAMES || free + length + 16 > SEEN_TEXTS_END) forgetAll();
  const hash = hashOf(owner, at, length);
  let slot = <u32>hash % SLOT_COUNT;
  for (let probe: u32 = 0; probe < MAX_PROBES; probe++) {
    const entry = SEEN_SLOTS + slot * SLOT_BYTES;
    if (load<u32>(entry + 12) == 0) {
      store<u32>(entry, <u32>(hash >> 32));
      store<u32>(entry + 4, free);
      store<u32>(entry + 8, length);
      store<u32>(entry + 12, owner);
      copy(free, at, length);
      free += length;
      count++;
      return;
    }
    // Two attributes of the line may have one name.
    if (load<u32>(entry + 12) == owner && load<u32>(entry) == <u32>(hash >> 32) && load<u32>(entry + 8) == length) {
      if (isSame(load<u32>(entry + 4), at, length)) return;
    }
    slot = (slot + 1) % SLOT_COUNT;
  }
}

function forgetAll(): void {
  memory.fill(SEEN_SLOTS, 0, SLOT_COUNT * SLOT_BYTES);
  count = 0;
  free = SEEN_TEXTS;
}
