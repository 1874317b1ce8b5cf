import type { ByteBuffer } from './byte-buffer.js';
import type { ByteCursor } from './byte-cursor.js';
import type { ByteSource } from './byte-source.js';
import { ONEOF_FIELD } from './message-layout.js';

const COLON = 0x3a;
const COMMA = 0x2c;
/** Fields of one record that are noted; lines with more are for the general reader. */
const MAX_FIELDS = 64;
/** The payload has a field of its own of this name. */
const TAKEN_KEY = Buffer.from(`"${ONEOF_FIELD}"`);

/** Where a line has the fields that its message does not know. */
export class OtherFields {
  /** Begin and end of each, key and value, one behind the other. */
  private readonly places = new Uint32Array(2 * MAX_FIELDS);
  count = 0;
  /** Where the key that was read last ends, behind its quote. */
  keyEnd = 0;

  clear(): void {
    this.count = 0;
  }

  /**
   * Passes a key and its value if they are spelt as they are to be written, and notes where they are.
   * @param previousStart begin of the key before it, which must come before it in the order of names
   * @param previousEnd end of that key; 0 where there is none
   */
  read(cursor: ByteCursor, previousStart: number, previousEnd: number): boolean {
    const start = cursor.at;
    if (this.count === MAX_FIELDS || !cursor.keyAfter(previousStart, previousEnd)) return false;
    this.keyEnd = cursor.at;
    const isTaken =
      this.keyEnd - start === TAKEN_KEY.length && TAKEN_KEY.compare(cursor.bytes, start, this.keyEnd) === 0;
    if (isTaken || !cursor.passByte(COLON) || !cursor.value()) return false;
    this.places[2 * this.count] = start;
    this.places[2 * this.count + 1] = cursor.at;
    this.count++;
    return true;
  }

  /** Appends them in their order, with commas in between. */
  append(source: ByteSource, out: ByteBuffer): void {
    for (let index = 0; index < this.count; index++) {
      if (index > 0) out.appendUint8(COMMA);
      out.appendBytes(source, this.places[2 * index], this.places[2 * index + 1]);
    }
  }
}
