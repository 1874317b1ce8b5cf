import type { SpanKernel } from './span-kernel.js';

/** Everything in the kernel's memory begins at a multiple of this, and has as many bytes behind it that may be read. */
const UNIT = 16;

/** The region of the kernel's memory for what it is taught: filled once, never freed. */
export class KernelHeap {
  private readonly view: DataView;
  private next: number;

  constructor(private readonly kernel: Pick<SpanKernel, 'memory' | 'templates' | 'templatesEnd'>) {
    this.view = new DataView(kernel.memory.buffer);
    this.next = kernel.templates;
  }

  get freeBytes(): number {
    return this.kernel.templatesEnd - this.next;
  }

  /** @returns the address. @throws RangeError when it is full: look at `freeBytes` before */
  placeBytes(bytes: Uint8Array): number {
    const at = this.reserve(bytes.length);
    this.kernel.memory.set(bytes, at);
    return at;
  }

  /** Numbers of 32 bits each. @returns the address. @throws RangeError as `placeBytes` */
  placeNumbers(numbers: readonly number[]): number {
    const at = this.reserve(4 * numbers.length);
    numbers.forEach((number, index) => {
      this.set(at, index, number);
    });
    return at;
  }

  /** Changes one of the numbers that were placed there. */
  set(address: number, index: number, number: number): void {
    this.view.setUint32(address + 4 * index, number, true);
  }

  get(address: number, index: number): number {
    return this.view.getUint32(address + 4 * index, true);
  }

  private reserve(byteCount: number): number {
    const at = this.next;
    const size = Math.ceil(byteCount / UNIT + 1) * UNIT;
    if (size > this.freeBytes) throw new RangeError("the kernel's memory for templates is full");
    this.next += size;
    return at;
  }
}
