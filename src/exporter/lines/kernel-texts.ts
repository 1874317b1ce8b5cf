import { headlineOf } from '../mapping/headline.js';
import { nodeErrorTypeOf } from '../mapping/node-error-type.js';
import { NO_WORDS, type ShownText } from '../redaction/prose-cache.js';
import type { Redactor } from '../redaction/redactor.js';
import type { LineKernel } from './line-kernel.js';

/** Longest text that the kernel is told, in bytes. */
const MAX_SHOWN_BYTES = 3072;
/** What `keepShown` returns in place of an address. */
const FULL = 0;
const CROWDED = 1;
/** What the kernel asks of texts, by its numbers: see `FIRST_SHOWN` in `kernel/assembly/lines/templates.ts`. */
const ASKED: readonly ((redactor: Redactor, text: string) => ShownText)[] = [
  (redactor, text) => redactor.shown('name', text),
  (redactor, text) => redactor.shown('text', text),
  (_redactor, text) => ({ shown: nodeErrorTypeOf(text), hidden: NO_WORDS, knownCount: 0 }),
  (redactor, text) => {
    const message = redactor.shown('text', text);
    return { ...message, shown: headlineOf(message.shown) };
  },
];
/** Numbers of a text in the kernel, as in `kernel/assembly/lines/shown-texts.ts`. */
const ENTRY = { treatment: 2, text: 3, length: 4, open: 7 };

/** Tells the kernel how texts are shown. Each run has its own; when there is no more room, all are forgotten. */
export class KernelTexts {
  /** Those that may be shown otherwise one day, by their numbers; another list when all were forgotten. */
  texts: ShownText[] = [];
  /** Where each stands in the kernel, as an index of numbers. */
  private entries: number[] = [];
  private readonly numbers: Uint32Array;

  constructor(private readonly kernel: LineKernel) {
    this.numbers = new Uint32Array(kernel.memory.buffer);
  }

  /** Says how the text is shown that the kernel asks for. @returns false where it cannot be told */
  tellUnknown(redactor: Redactor): boolean {
    const { writer } = this.kernel;
    return this.tell(redactor, writer.unknownTreatment(), writer.unknownText(), writer.unknownLength());
  }

  /** A text is shown otherwise now: says so, unless that was done. @param number of the text as it was */
  tellAgain(redactor: Redactor, number: number): void {
    const entry = this.entries[number];
    if (entry === undefined || this.at(entry, ENTRY.open) !== number + 1) return;
    this.tell(redactor, this.at(entry, ENTRY.treatment), this.at(entry, ENTRY.text), this.at(entry, ENTRY.length));
  }

  private tell(redactor: Redactor, treatment: number, at: number, length: number): boolean {
    const { memory, writer } = this.kernel;
    const value = Buffer.from(memory.buffer, at, length).toString('latin1');
    const text = ASKED[treatment]?.(redactor, value);
    if (text === undefined) return false;
    const bytes = Buffer.from(text.shown);
    if (bytes.length > MAX_SHOWN_BYTES) return false;
    memory.set(bytes, writer.shownText);
    const { anywhere, outsideQuotes } = text.hidden;
    const isOpen = anywhere.length > 0 || outsideQuotes.length > 0;
    const keep = () => writer.keepShown(treatment, at, length, bytes.length, isOpen ? this.texts.length + 1 : 0);
    let kept = keep();
    if (kept === FULL) {
      writer.forgetTexts();
      this.texts = [];
      this.entries = [];
      kept = keep();
    }
    if (kept <= CROWDED) return false;
    if (isOpen) {
      this.texts.push(text);
      this.entries.push(kept / Uint32Array.BYTES_PER_ELEMENT);
    }
    return true;
  }

  private at(entry: number, index: number): number {
    return this.numbers[entry + index] as number;
  }
}
