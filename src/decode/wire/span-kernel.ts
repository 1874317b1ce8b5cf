import { packageFile } from '../../component/package-file.js';
import { type KernelNumber, loadKernel } from './load-kernel.js';

/**
 * The part of decoding that is WebAssembly: it writes the lines of spans that are laid out like one that was written
 * before. Its source, and what stands where in its memory, is in `kernel/assembly/`. The memory has a fixed size.
 */
export interface SpanKernel {
  readonly memory: Uint8Array;
  /** Addresses: a stretch of the request, the cells and lines that were written, what it was taught. */
  readonly body: number;
  readonly bodyEnd: number;
  readonly cells: number;
  readonly out: number;
  readonly templates: number;
  readonly templatesEnd: number;
  setEventTypes(address: number): void;
  /**
   * Writes consecutive spans of one trace from address `at` on, and stops before the first that it cannot write.
   * @param linesLength how many bytes of lines the page has
   * @returns how many spans it wrote
   */
  run(at: number, end: number, linesLength: number): number;
  /** Where the latest run stopped, where its lines end, where the trace id of its spans stands. */
  stoppedAt(): number;
  outEnd(): number;
  traceIdAt(): number;
}

/** `undefined` where the compiled kernel is missing or this machine has no WebAssembly with SIMD: JavaScript does all, then. */
export function loadSpanKernel(): SpanKernel | undefined {
  const exports = loadKernel(packageFile('dist/span-kernel.wasm')) as KernelExports | undefined;
  if (exports === undefined) return undefined;
  return {
    memory: new Uint8Array(exports.memory.buffer),
    body: exports.BODY.value,
    bodyEnd: exports.BODY_END.value,
    cells: exports.CELLS.value,
    out: exports.OUT.value,
    templates: exports.TEMPLATES.value,
    templatesEnd: exports.TEMPLATES_END.value,
    setEventTypes: exports.setEventTypes,
    run: exports.run,
    stoppedAt: () => exports.stoppedAt.value,
    outEnd: () => exports.outEnd.value,
    traceIdAt: () => exports.traceIdAt.value,
  };
}

/** What `kernel/assembly/index.ts` exports. */
interface KernelExports {
  readonly memory: { readonly buffer: ArrayBuffer };
  readonly BODY: KernelNumber;
  readonly BODY_END: KernelNumber;
  readonly CELLS: KernelNumber;
  readonly OUT: KernelNumber;
  readonly TEMPLATES: KernelNumber;
  readonly TEMPLATES_END: KernelNumber;
  readonly stoppedAt: KernelNumber;
  readonly outEnd: KernelNumber;
  readonly traceIdAt: KernelNumber;
  readonly setEventTypes: (address: number) => void;
  readonly run: (at: number, end: number, linesLength: number) => number;
}
