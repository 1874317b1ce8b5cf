import type { ColumnChunk, Encoding, ParquetType, Statistics } from 'hyparquet';

/** A finished column chunk without its bytes: plain data, so that it can go from thread to thread. */
export interface EncodedChunk {
  readonly type: ParquetType;
  readonly encodings: readonly Encoding[];
  readonly path: readonly string[];
  readonly valueCount: number;
  readonly uncompressedBytes: number;
  readonly statistics: Statistics;
  /** Length of all of it, in bytes: the dictionary page, if there is one, and the data pages. */
  readonly byteLength: number;
  /** 0 where there is no dictionary. */
  readonly dictionaryBytes: number;
  readonly pages: readonly { readonly byteLength: number; readonly firstRow: number }[];
}

/** The chunk's metadata when it begins at `offset` in the file. */
export function columnChunkAt(chunk: EncodedChunk, offset: number): ColumnChunk {
  return {
    file_offset: BigInt(offset),
    meta_data: {
      type: chunk.type,
      encodings: [...chunk.encodings],
      path_in_schema: [...chunk.path],
      codec: 'SNAPPY',
      num_values: BigInt(chunk.valueCount),
      total_uncompressed_size: BigInt(chunk.uncompressedBytes),
      total_compressed_size: BigInt(chunk.byteLength),
      data_page_offset: BigInt(offset + chunk.dictionaryBytes),
      ...(chunk.dictionaryBytes === 0 ? {} : { dictionary_page_offset: BigInt(offset) }),
      statistics: chunk.statistics,
    },
  };
}

/** Where each data page lies, for the offset index. */
export function pageLocations(
  chunk: EncodedChunk,
  offset: number,
): { offset: bigint; compressed_page_size: number; first_row_index: bigint }[] {
  let next = offset + chunk.dictionaryBytes;
  return chunk.pages.map(({ byteLength, firstRow }) => {
    const location = { offset: BigInt(next), compressed_page_size: byteLength, first_row_index: BigInt(firstRow) };
    next += byteLength;
    return location;
  });
}
