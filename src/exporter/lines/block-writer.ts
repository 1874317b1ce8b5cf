import type { MappingSwitches } from '../mapping/mapping-switches.js';
import type { NodeIndex } from '../mapping/node-index.js';
import type { Redactor } from '../redaction/redactor.js';
import { roleIndexOf } from './attribute-plan.js';
import type { KernelTexts } from './kernel-texts.js';
import { BLOCK_BYTES, type LineBlock, PLACE_NUMBERS } from './line-blocks.js';
import type { LineKernel } from './line-kernel.js';
import { FAILED_BIT, WRITTEN_NUMBERS, type WrittenSpans } from './written-spans.js';

/** Attributes of which `SpanTranscoder` asks more than the line. */
const OTHER_ROLES = [
  'sql',
  'test_outcome',
  'node_test_detail',
  'node_freshness_outcome',
  'node_outcome_detail',
  'node_skip_upstream_detail',
].reduce((bits, role) => bits | (1 << roleIndexOf(role)), 0);

/** What decides how a run's spans are written. */
export interface WriterRules {
  readonly switches: MappingSwitches;
  readonly redactor: Redactor;
  readonly nodes: Pick<NodeIndex, 'hasErrors' | 'hasInterruptions'>;
}

/** Has the kernel write the spans of held lines, all that are in a block at once, as the first of them is sent. */
export class BlockWriter {
  /** The span that was found last. */
  bytes: Buffer = NO_BYTES;
  start = 0;
  end = 0;
  private readonly numbers: Int32Array;

  /** @param run a number of the run's own, from `KernelLines.newRun` */
  constructor(
    private readonly kernel: LineKernel,
    private readonly texts: KernelTexts,
    private readonly run: number,
    private readonly rules: WriterRules,
  ) {
    this.numbers = new Int32Array(kernel.memory.buffer);
  }

  /** Looks for the span of a line. @returns false where JavaScript has to write it */
  find(block: LineBlock, index: number): boolean {
    if (block.bytes.length > BLOCK_BYTES || this.rules.nodes.hasInterruptions) return false;
    let { written } = block;
    if (written === undefined || index < written.firstLine || index >= written.firstLine + written.lineCount) {
      written = this.write(block, index);
      block.written = written;
    }
    const at = WRITTEN_NUMBERS * (index - written.firstLine);
    this.bytes = written.bytes;
    this.start = written.numbers[at] as number;
    this.end = written.numbers[at + 1] as number;
    const last = written.numbers[at + 3] as number;
    // What was logged of errors says more of a failure than its line.
    if (this.end === 0 || (last >= FAILED_BIT && this.rules.nodes.hasErrors)) return false;
    return this.isCurrent(written, written.numbers[at + 2] as number, last & (FAILED_BIT - 1));
  }

  /** Whether the texts of a span would be shown the same way now. */
  private isCurrent(written: WrittenSpans, firstText: number, textCount: number): boolean {
    for (let index = firstText; index < firstText + textCount; index++) {
      const number = written.openTexts[index] as number;
      const text = written.texts[number];
      if (text !== undefined && this.rules.redactor.isCurrent(text)) continue;
      if (written.texts === this.texts.texts) {
        this.kernel.writer.setTextRun(this.run);
        this.texts.tellAgain(this.rules.redactor, number);
      }
      return false;
    }
    return true;
  }

  /** Writes the lines of a block from one on, as far as there is room. */
  private write(block: LineBlock, firstLine: number): WrittenSpans {
    const { writer, memory } = this.kernel;
    const { switches, redactor } = this.rules;
    const lineCount = block.lineTotal - firstLine;
    const bytesBefore = block.startOf(firstLine);
    const cellsBefore = block.firstCellOf(firstLine);
    memory.set(block.bytes.subarray(bytesBefore, block.length), writer.held);
    this.numbers.set(block.cells.subarray(cellsBefore, block.cellCount), writer.heldCells / INT_BYTES);
    const places = block.places.subarray(PLACE_NUMBERS * firstLine, PLACE_NUMBERS * block.lineTotal);
    this.numbers.set(places, writer.heldLines / INT_BYTES);
    writer.setTextRun(this.run);
    writer.setRules(OTHER_ROLES, !switches['node-errors'], redactor.level !== 'off');
    writer.beginSpans(bytesBefore, cellsBefore);
    return this.taken(firstLine, this.writeLines(lineCount));
  }

  /** @returns how many lines were looked at */
  private writeLines(lineCount: number): number {
    const { writer } = this.kernel;
    let done = 0;
    while (done < lineCount) {
      const texts = this.texts.texts;
      done = writer.writeSpans(done, lineCount);
      if (done === lineCount) break;
      const isUnknown = writer.unknownLength() > 0;
      // Without room for a single one, or for its text, it is JavaScript's.
      if (isUnknown ? !this.texts.tellUnknown(this.rules.redactor) : done === 0) this.leave(done++);
      else if (!isUnknown) break;
      // The numbers of texts that spans have already are those of the old list.
      if (texts !== this.texts.texts) for (let line = 0; line < done; line++) this.leave(line);
    }
    return done;
  }

  /** Leaves a line to JavaScript. */
  private leave(line: number): void {
    const at = this.kernel.writer.written / INT_BYTES + WRITTEN_NUMBERS * line;
    this.numbers.fill(0, at, at + WRITTEN_NUMBERS);
  }

  private taken(firstLine: number, lineCount: number): WrittenSpans {
    const { memory, writer } = this.kernel;
    const { spans, openTexts, written } = writer;
    const byteCount = writer.spansEnd() - spans;
    const bytes = Buffer.allocUnsafeSlow(byteCount);
    bytes.set(memory.subarray(spans, spans + byteCount));
    const written0 = written / INT_BYTES;
    return {
      firstLine,
      lineCount,
      bytes,
      numbers: this.numbers.slice(written0, written0 + WRITTEN_NUMBERS * lineCount),
      openTexts: this.numbers.slice(openTexts / INT_BYTES, writer.openEnd() / INT_BYTES),
      texts: this.texts.texts,
    };
  }
}

const INT_BYTES = Int32Array.BYTES_PER_ELEMENT;
const NO_BYTES = Buffer.alloc(0);
