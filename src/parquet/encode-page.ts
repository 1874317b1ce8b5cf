import type { PageHeader } from 'hyparquet';
import { ByteWriter } from 'hyparquet-writer';
import { writePageHeader } from 'hyparquet-writer/src/datapage.js';
import { snappyCompress } from 'hyparquet-writer/src/snappy.js';

/** A page as it lies in the file: its header and its compressed body. */
export interface EncodedPage {
  readonly bytes: Uint8Array;
  /** Length before compression, header included. */
  readonly uncompressedBytes: number;
}

/** Compresses a page's body with Snappy and puts its header before it. The bytes are a copy. */
export function encodePage(
  body: Uint8Array,
  header: Omit<PageHeader, 'uncompressed_page_size' | 'compressed_page_size'>,
): EncodedPage {
  const compressed = snappyCompress(body);
  const head = new ByteWriter(64);
  writePageHeader(head, {
    ...header,
    uncompressed_page_size: body.length,
    compressed_page_size: compressed.length,
  });
  return { bytes: Buffer.concat([head.getBytes(), compressed]), uncompressedBytes: head.offset + body.length };
}
