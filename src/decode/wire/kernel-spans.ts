import type { Resource } from '../../record/resource.js';
import { CELLS_PER_SPAN } from '../../record/span-page.js';
import type { DecodedBatches } from './decoded-batches.js';
import { KernelTemplates, type WrittenSpan } from './kernel-templates.js';
import type { LineBuffer } from './line-buffer.js';
import type { SpanKernel } from './span-kernel.js';

/** Larger spans are left to JavaScript: the kernel needs twelve times as much for their lines. */
const MAX_SPAN_BYTES = 32 * 1024;

/** Has the kernel decode the spans of one request at a time, a stretch of it after the other, and copies what it wrote. */
export class KernelSpans {
  private readonly templates: KernelTemplates;
  private readonly cells: Uint32Array;
  /** The stretch of the request that the kernel has. */
  private from = 0;
  private to = 0;

  constructor(private readonly kernel: SpanKernel) {
    this.templates = new KernelTemplates(kernel);
    this.cells = new Uint32Array(kernel.memory.buffer);
  }

  /** Of a new request. */
  begin(): void {
    this.from = this.to = 0;
    this.templates.begin();
  }

  learn(written: WrittenSpan, batches: DecodedBatches): void {
    this.templates.learn(written, batches.page);
  }

  /**
   * Decodes spans from the field at `at` on, as far as the kernel knows them.
   * @param spanEnd where the first span ends
   * @param end where the last one ends
   * @returns where the first field begins that is left
   */
  decode(
    bytes: Buffer,
    at: number,
    spanEnd: number,
    end: number,
    resource: Resource,
    out: LineBuffer,
    batches: DecodedBatches,
  ): number {
    if (spanEnd > this.to || at < this.from) {
      if (spanEnd - at > MAX_SPAN_BYTES) return at;
      this.load(bytes, at);
    }
    const { kernel } = this;
    const shift = kernel.body - this.from;
    const count = kernel.run(at + shift, Math.min(end, this.to) + shift, out.length);
    if (count === 0) return at;
    const lines = kernel.memory.subarray(kernel.out, kernel.outEnd());
    out.reserve(lines.length);
    out.copyLong(lines);
    batches.page.addSpans(this.cells.subarray(kernel.cells / 4, kernel.cells / 4 + count * CELLS_PER_SPAN));
    batches.addSpans(count, bytes, kernel.traceIdAt() - shift, resource);
    return kernel.stoppedAt() - shift;
  }

  private load(bytes: Buffer, at: number): void {
    const { memory, body, bodyEnd } = this.kernel;
    this.from = at;
    this.to = Math.min(bytes.length, at + bodyEnd - body);
    memory.set(bytes.subarray(at, this.to), body);
  }
}
