import type { AsyncBuffer, RowGroup } from 'hyparquet';
import { readableBytes } from '../component/readable-bytes.js';
import { type PageHeader, parsePageHeader } from './page-header.js';

/** A page may have so many values; writers cut pages at about a MiB, or at a row group's end. */
const MAX_PAGE_VALUES = 4_194_304;
/** And so many bytes when it is unpacked. */
const MAX_PAGE_BYTES = 256 * 2 ** 20;
/** What is read of a page to find its header, in bytes; more only where that does not hold it. */
const HEADER_BYTES = 1_024;
const MAX_HEADER_BYTES = 2 ** 20;

/**
 * Looks at the headers of all pages of a row group before anything is unpacked: a few bytes can claim gigabytes, for which
 * a reader would make room. What stands inside of the pages is not looked at.
 * @throws Error when a page is larger than a real one, a column lies outside of the file, or the group has more rows than
 * its pages.
 */
export async function checkPages(file: AsyncBuffer, group: RowGroup): Promise<void> {
  for (const { meta_data: column } of group.columns) {
    if (column === undefined) throw new Error('a column has no description');
    // 0 stands for none with some writers.
    const dictionaryAt = Number(column.dictionary_page_offset ?? 0) || Number.POSITIVE_INFINITY;
    const start = Math.min(dictionaryAt, Number(column.data_page_offset));
    const end = start + Number(column.total_compressed_size);
    if (!(start >= 0 && end >= start && end <= file.byteLength)) throw new Error('a column lies outside of the file');
    let valueCount = 0;
    for (let at = start; at < end; ) {
      const page = await readHeader(file, at, end);
      if (page.valueCount > MAX_PAGE_VALUES) throw new Error(`a page claims ${page.valueCount} values`);
      if (page.uncompressedBytes > MAX_PAGE_BYTES) {
        throw new Error(`a page claims ${readableBytes(page.uncompressedBytes)}`);
      }
      valueCount += page.valueCount;
      at += page.headerBytes + page.compressedBytes;
    }
    if (group.num_rows > valueCount) throw new Error(`a row group claims ${group.num_rows} rows, more than it has`);
  }
}

async function readHeader(file: AsyncBuffer, at: number, end: number): Promise<PageHeader> {
  for (let length = HEADER_BYTES; ; length *= 32) {
    const bytes = new Uint8Array(await file.slice(at, Math.min(at + length, end)));
    try {
      return parsePageHeader(bytes);
    } catch (error) {
      if (!(error instanceof RangeError) || length > MAX_HEADER_BYTES || at + length >= end) throw error;
    }
  }
}
