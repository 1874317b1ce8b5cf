/** Numbers that are appended one by one; the allocation is reused from page to page. */
export class Uint32List {
  private items = new Uint32Array(64);
  private end = 0;

  get length(): number {
    return this.end;
  }

  /** The first `length` of these are the numbers; valid until the next one is appended. */
  get values(): Uint32Array {
    return this.items;
  }

  push(value: number): void {
    if (this.end === this.items.length) this.grow(this.end + 1);
    this.items[this.end++] = value;
  }

  /** Appends one value `count` times. */
  pushMany(value: number, count: number): void {
    if (this.end + count > this.items.length) this.grow(this.end + count);
    this.items.fill(value, this.end, this.end + count);
    this.end += count;
  }

  clear(): void {
    this.end = 0;
  }

  private grow(needed: number): void {
    const grown = new Uint32Array(Math.max(needed, this.items.length * 2));
    grown.set(this.items);
    this.items = grown;
  }
}
