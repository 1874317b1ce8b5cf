import type { Encoding } from 'hyparquet';
import { ByteBuffer } from './byte-buffer.js';
import type { ByteSource } from './byte-source.js';
import { type ColumnValues, MAX_DICTIONARY_BYTES, PAGE_BYTES } from './column-values.js';
import { DictionaryPages } from './dictionary-pages.js';
import { TextDictionary } from './text-dictionary.js';

/** UTF-8 texts. */
export class TextValues implements ColumnValues {
  readonly type = 'BYTE_ARRAY';
  readonly hasDictionary = true;
  private readonly texts = new TextDictionary();
  private readonly pages = new DictionaryPages(this.texts);
  private readonly plain = new ByteBuffer();

  get heldBytes(): number {
    return this.texts.values.length + this.plain.length + this.pages.heldBytes;
  }

  get isFull(): boolean {
    if (!this.pages.isOpen) return this.plain.length >= PAGE_BYTES;
    return this.texts.values.length > MAX_DICTIONARY_BYTES || this.texts.isCrowded;
  }

  append(source: ByteSource, start: number, end: number): void {
    if (this.pages.isOpen) {
      this.pages.push(this.texts.indexOf(source, start, end));
    } else {
      this.plain.appendUint32(end - start);
      this.plain.appendBytes(source, start, end);
    }
  }

  appendPage(body: ByteBuffer): Encoding {
    return this.pages.appendPage(body, this.plain);
  }

  endDictionary(): void {
    this.pages.close();
  }

  dictionary() {
    return this.pages.dictionary();
  }

  bounds() {
    const bounds = this.pages.isOpen ? this.texts.bounds() : undefined;
    return bounds === undefined ? undefined : { min_value: bounds.least, max_value: bounds.greatest };
  }

  clear(): void {
    this.texts.clear();
    this.pages.clear();
    this.plain.clear();
  }
}
