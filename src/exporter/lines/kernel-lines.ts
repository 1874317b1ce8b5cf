import { BlockWriter, type WriterRules } from './block-writer.js';
import { KernelLayouts } from './kernel-layouts.js';
import { KernelTexts } from './kernel-texts.js';
import type { LineKernel } from './line-kernel.js';
import type { ScannedLine } from './scanned-line.js';

/** Numbers of a line that the kernel read; see kernel/assembly/lines/index.ts. */
const LINE = { start: 0, end: 1, firstCell: 2, cellsEnd: 3, kinds: 4, firstName: 5, nameCount: 6 };
const LINE_NUMBERS = 7;
/** Bits of its kinds. */
const IS_END = 1;
const IS_JOINED = 2;
const IS_NODE_KNOWN = 4;
const LINE_BREAK = 0x0a;

/** Has the kernel read many lines at once, a stretch of the bytes after the other, and says of one at a time what it read. */
export class KernelLines implements ScannedLine {
  readonly layouts: KernelLayouts;
  private readonly texts: KernelTexts;
  readonly cells: Int32Array;
  readonly nameCells: Int32Array;
  firstCell = 0;
  cellCount = 0;
  isEnd = false;
  isJoined = false;
  isNodeKnown = false;
  firstName = 0;
  nameCount = 0;
  view: DataView = NO_VIEW;
  /** Where the line begins that `pointAt` was told, and where its line break stands. */
  start = 0;
  end = 0;
  private bytes: Buffer = EMPTY;
  /** The stretch that the kernel has. */
  private from = 0;
  private to = 0;
  private readonly firstLine: number;
  private runCount = 0;

  constructor(private readonly kernel: LineKernel) {
    this.layouts = new KernelLayouts(kernel);
    this.texts = new KernelTexts(kernel);
    this.cells = new Int32Array(kernel.memory.buffer);
    this.nameCells = this.cells;
    this.firstLine = kernel.lines / 4;
  }

  /** A number for a run whose names are all still to be learned. */
  newRun(): number {
    return ++this.runCount;
  }

  /** Has the kernel write the spans of a run. */
  writerFor(rules: WriterRules): BlockWriter {
    return new BlockWriter(this.kernel, this.texts, this.newRun(), rules);
  }

  /**
   * The bytes that lines are read from now, and the trace that they are of: 32 hexadecimal digits.
   * @param run from `newRun`; names that it brought before are not among its lines' names again
   */
  begin(bytes: Buffer, view: DataView, traceId: string, run: number): void {
    this.kernel.setRun(run);
    this.bytes = bytes;
    this.view = view;
    this.from = this.to = 0;
    for (let digit = 0; digit < traceId.length; digit++) {
      this.kernel.memory[this.kernel.traceId + digit] = traceId.charCodeAt(digit);
    }
  }

  /** Lets go of the bytes. */
  forget(): void {
    this.bytes = EMPTY;
    this.view = NO_VIEW;
  }

  /** Reads lines from the one at `start` on. @returns how many; 0 where JavaScript has to read the first */
  read(start: number): number {
    if (start < this.from || start >= this.to) this.load(start);
    const { kernel } = this;
    const shift = kernel.chunk - this.from;
    return this.to <= start ? 0 : kernel.run(start + shift, this.to + shift);
  }

  /** Points at one of the lines that were read. */
  pointAt(index: number): void {
    const { cells, kernel } = this;
    const at = this.firstLine + index * LINE_NUMBERS;
    const shift = kernel.chunk - this.from;
    this.start = (cells[at + LINE.start] as number) - shift;
    this.end = (cells[at + LINE.end] as number) - shift;
    this.firstCell = cells[at + LINE.firstCell] as number;
    this.cellCount = (cells[at + LINE.cellsEnd] as number) - this.firstCell;
    const kinds = cells[at + LINE.kinds] as number;
    this.isEnd = (kinds & IS_END) !== 0;
    this.isJoined = (kinds & IS_JOINED) !== 0;
    this.isNodeKnown = (kinds & IS_NODE_KNOWN) !== 0;
    this.firstName = cells[at + LINE.firstName] as number;
    this.nameCount = cells[at + LINE.nameCount] as number;
  }

  /** Where the latest reading stopped. */
  get stoppedAt(): number {
    return this.kernel.stoppedAt() - this.kernel.chunk + this.from;
  }

  private load(start: number): void {
    const { memory, chunk, chunkEnd } = this.kernel;
    const most = Math.min(this.bytes.length, start + chunkEnd - chunk);
    const stretch = this.bytes.subarray(start, most);
    this.from = start;
    // Behind it is what was there before: only whole lines are given to the kernel.
    this.to = start + stretch.lastIndexOf(LINE_BREAK) + 1;
    memory.set(this.to === most ? stretch : stretch.subarray(0, this.to - start), chunk);
    this.kernel.forgetNames();
  }
}

const EMPTY = Buffer.alloc(0);
const NO_VIEW = new DataView(EMPTY.buffer);
