/** Names that are kept: at most this many a trace, the latest; a log record of an older span gets its name inferred. */
const MAX_NAMES = 16_384;
/** Bytes of names that are kept. */
const MAX_BYTES = 2 * 1024 * 1024;
/** Names are numbered up to here; of what comes after it, none is kept. */
const MAX_NUMBER = 2 ** 29;
/** A number in a list. */
const NUMBER_BYTES = 8;
/** Stands for a name that is not kept. */
const NONE = 0;

/** Names of spans by number, as JSON: the latest ones, in two generations of which the older is dropped. */
export class SpanNames {
  private recent = new Generation(1);
  private older = new Generation(1);

  /** Keeps the name whose JSON stands there. Returns its number. */
  add(from: Uint8Array, start = 0, end = from.length): number {
    const length = end - start;
    if (length > MAX_BYTES / 2 || this.recent.nextNumber >= MAX_NUMBER) return NONE;
    if (this.recent.count >= MAX_NAMES / 2 || this.recent.byteCount + length > MAX_BYTES / 2) {
      this.older = this.recent;
      this.recent = new Generation(this.older.nextNumber);
    }
    return this.recent.append(from, start, end);
  }

  /** Memory that they take, in bytes, about. */
  get byteCount(): number {
    return this.recent.capacityBytes + this.older.capacityBytes;
  }

  get(number: number): string | undefined {
    return this.recent.get(number) ?? this.older.get(number);
  }
}

/** Names one behind the other, and where each ends. */
class Generation {
  private readonly ends: number[] = [];
  private bytes = Buffer.alloc(0);
  byteCount = 0;

  constructor(private readonly firstNumber: number) {}

  get count(): number {
    return this.ends.length;
  }

  get capacityBytes(): number {
    return this.bytes.length + this.ends.length * NUMBER_BYTES;
  }

  get nextNumber(): number {
    return this.firstNumber + this.ends.length;
  }

  append(from: Uint8Array, start: number, end: number): number {
    const length = end - start;
    if (this.byteCount + length > this.bytes.length) {
      const larger = Buffer.allocUnsafeSlow(Math.max(4096, 2 * this.bytes.length, this.byteCount + length));
      this.bytes.copy(larger, 0, 0, this.byteCount);
      this.bytes = larger;
    }
    for (let index = start; index < end; index++) this.bytes[this.byteCount++] = from[index] as number;
    this.ends.push(this.byteCount);
    return this.nextNumber - 1;
  }

  get(number: number): string | undefined {
    const place = number - this.firstNumber;
    const end = this.ends[place];
    if (end === undefined) return undefined;
    return JSON.parse(this.bytes.toString('utf8', this.ends[place - 1] ?? 0, end)) as string;
  }
}
