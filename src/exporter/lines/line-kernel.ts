import { packageFile } from '../../component/package-file.js';
import { type KernelNumber, loadKernel } from '../../decode/wire/load-kernel.js';

/**
 * The part of exporting that is WebAssembly: it reads lines of spans to cells, many at once. Its source, and what stands
 * where in its memory, is in `kernel/assembly/lines/`. The memory has a fixed size, 2.5 MiB.
 */
export interface LineKernel {
  readonly memory: Uint8Array;
  /** Addresses: whole lines, what was read of each, what the kernel was taught, the trace id's digits. */
  readonly chunk: number;
  readonly chunkEnd: number;
  readonly lines: number;
  readonly templates: number;
  readonly templatesEnd: number;
  readonly traceId: number;
  setEvents(address: number): void;
  /** Names that come are of this run from now on: a name that came in it before is not given again. @param run not 0 */
  setRun(run: number): void;
  /** Says that other bytes are in its memory: names are taught anew. */
  forgetNames(): void;
  /** Reads lines from address `at` to `end`, behind a line break. @returns how many, before the first that it cannot read */
  run(at: number, end: number): number;
  /** Where the latest run stopped. */
  stoppedAt(): number;
}

/** `undefined` where the compiled kernel is missing or this machine has no WebAssembly with SIMD: JavaScript does all, then. */
export function loadLineKernel(): LineKernel | undefined {
  const exports = loadKernel(packageFile('dist/line-kernel.wasm')) as KernelExports | undefined;
  if (exports === undefined) return undefined;
  return {
    memory: new Uint8Array(exports.memory.buffer),
    chunk: exports.CHUNK.value,
    chunkEnd: exports.CHUNK_END.value,
    lines: exports.LINES.value,
    templates: exports.TEMPLATES.value,
    templatesEnd: exports.TEMPLATES_END.value,
    traceId: exports.TRACE_ID.value,
    setEvents: exports.setEvents,
    setRun: exports.setRun,
    forgetNames: exports.forgetNames,
    run: exports.run,
    stoppedAt: () => exports.stoppedAt.value,
  };
}

/** What `kernel/assembly/lines/index.ts` exports. */
interface KernelExports {
  readonly memory: { readonly buffer: ArrayBuffer };
  readonly CHUNK: KernelNumber;
  readonly CHUNK_END: KernelNumber;
  readonly LINES: KernelNumber;
  readonly TEMPLATES: KernelNumber;
  readonly TEMPLATES_END: KernelNumber;
  readonly TRACE_ID: KernelNumber;
  readonly stoppedAt: KernelNumber;
  readonly setEvents: (address: number) => void;
  readonly setRun: (run: number) => void;
  readonly forgetNames: () => void;
  readonly run: (at: number, end: number) => number;
}
