import { packageFile } from '../../component/package-file.js';
import { type KernelNumber, loadKernel } from '../../decode/wire/load-kernel.js';

/**
 * The part of exporting that is WebAssembly: it reads lines of spans to cells, many at once, and writes the spans of held
 * lines. Its source, and what stands where in its memory, is in `kernel/assembly/lines/`. The memory has a fixed size,
 * 14.25 MiB, of which the system gives what is used.
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
  readonly writer: SpanWriterKernel;
}

/** The part of the kernel that writes spans: `kernel/assembly/lines/span-writer.ts` and `shown-texts.ts`. */
export interface SpanWriterKernel {
  /** Addresses of tables by index: of attributes, of event types. */
  readonly plans: number;
  readonly maxPlans: number;
  readonly eventPlans: number;
  /** Addresses: held lines, their cells, where each stands; the spans, where each stands, texts of theirs; a text that is told. */
  readonly held: number;
  readonly heldCells: number;
  readonly heldLines: number;
  readonly spans: number;
  readonly written: number;
  readonly openTexts: number;
  readonly shownText: number;
  /** Attributes that it leaves to JavaScript, by the bits of their roles; whether it leaves failed nodes; whether texts are redacted. */
  setRules(roles: number, areFailuresOthers: boolean, areTextsRedacted: boolean): void;
  /** Texts are of this run from now on; not 0. */
  setTextRun(run: number): void;
  forgetTexts(): void;
  /** @param open its number plus one where it may be shown otherwise one day, else 0. @returns its address; 0 where all have to be forgotten first, 1 where it cannot be kept */
  keepShown(treatment: number, at: number, length: number, shownLength: number, open: number): number;
  beginSpans(bytesBefore: number, cellsBefore: number): void;
  /** @returns the number of the first line that it did not look at */
  writeSpans(from: number, to: number): number;
  spansEnd(): number;
  openEnd(): number;
  unknownText(): number;
  unknownLength(): number;
  unknownTreatment(): number;
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
    writer: writerOf(exports),
  };
}

function writerOf(exports: KernelExports): SpanWriterKernel {
  return {
    plans: exports.PLANS.value,
    maxPlans: exports.MAX_PLANS.value,
    eventPlans: exports.EVENT_PLANS.value,
    held: exports.HELD.value,
    heldCells: exports.HELD_CELLS.value,
    heldLines: exports.HELD_LINES.value,
    spans: exports.SPANS.value,
    written: exports.WRITTEN.value,
    openTexts: exports.OPEN_TEXTS.value,
    shownText: exports.SHOWN_TEXT.value,
    setRules: (roles, areFailuresOthers, areTextsRedacted) =>
      exports.setRules(roles, areFailuresOthers ? 1 : 0, areTextsRedacted ? 1 : 0),
    setTextRun: exports.setTextRun,
    forgetTexts: exports.forgetTexts,
    keepShown: exports.keepShown,
    beginSpans: exports.beginSpans,
    writeSpans: exports.writeSpans,
    spansEnd: () => exports.spansEnd.value,
    openEnd: () => exports.openEnd.value,
    unknownText: () => exports.unknownText.value,
    unknownLength: () => exports.unknownLength.value,
    unknownTreatment: () => exports.unknownTreatment.value,
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
  readonly PLANS: KernelNumber;
  readonly MAX_PLANS: KernelNumber;
  readonly EVENT_PLANS: KernelNumber;
  readonly HELD: KernelNumber;
  readonly HELD_CELLS: KernelNumber;
  readonly HELD_LINES: KernelNumber;
  readonly SPANS: KernelNumber;
  readonly WRITTEN: KernelNumber;
  readonly OPEN_TEXTS: KernelNumber;
  readonly SHOWN_TEXT: KernelNumber;
  readonly setRules: (roles: number, areFailuresOthers: number, areTextsRedacted: number) => void;
  readonly setTextRun: (run: number) => void;
  readonly forgetTexts: () => void;
  readonly keepShown: SpanWriterKernel['keepShown'];
  readonly beginSpans: SpanWriterKernel['beginSpans'];
  readonly writeSpans: SpanWriterKernel['writeSpans'];
  readonly spansEnd: KernelNumber;
  readonly openEnd: KernelNumber;
  readonly unknownText: KernelNumber;
  readonly unknownLength: KernelNumber;
  readonly unknownTreatment: KernelNumber;
}
