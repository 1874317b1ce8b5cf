import type { Encoding, ParquetType, Statistics } from 'hyparquet';
import type { ByteBuffer } from './byte-buffer.js';

/** Size at which a dictionary is given up and further pages hold the values themselves: the engine's (parquet-rs's) own. */
export const MAX_DICTIONARY_BYTES = 1024 * 1024;
/** Size at which a page without a dictionary ends: the engine's own. */
export const PAGE_BYTES = 1024 * 1024;

/** The values of one column of a row group: those of the open page, and the dictionary that its pages refer to. */
export interface ColumnValues {
  readonly type: ParquetType;
  /** The engine writes dictionaries for everything but booleans. */
  readonly hasDictionary: boolean;
  /** Bytes held, roughly. */
  readonly heldBytes: number;
  /** The open page is to be ended, then `endDictionary` called: the dictionary takes no more, or the page is large. */
  readonly isFull: boolean;
  /** Appends the values of the open page to its body, and begins the next page. */
  appendPage(body: ByteBuffer): Encoding;
  /** Further pages will hold the values themselves. */
  endDictionary(): void;
  /** The dictionary page's body; `undefined` where no page refers to it. Valid until `clear`. */
  dictionary(): { readonly bytes: Uint8Array; readonly count: number } | undefined;
  /** The least and greatest value; none where not all values were looked at. */
  bounds(): Pick<Statistics, 'min_value' | 'max_value'> | undefined;
  /** Begins the next row group. */
  clear(): void;
}
