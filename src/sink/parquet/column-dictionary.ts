import { ByteBuffer } from './byte-buffer.js';
import type { ColumnStatistics } from './column-statistics.js';
import { type EncodedPage, encodePage } from './encode-page.js';
import type { PlainEncoding } from './plain-encoding.js';

/** Size at which a dictionary is given up and further pages hold the values themselves: the engine's (parquet-rs's) own. */
const MAX_BYTES = 1024 * 1024;

/** The distinct values of a column chunk, each with its index; at most about 1 MiB of them. */
export class ColumnDictionary<T> {
  private readonly values = new ByteBuffer();
  private readonly indexes = new Map<T, number>();
  private count = 0;

  constructor(
    private readonly encoding: PlainEncoding<T>,
    private readonly statistics: ColumnStatistics,
  ) {}

  get byteLength(): number {
    return this.values.length;
  }

  get isFull(): boolean {
    return this.values.length > MAX_BYTES;
  }

  /** Bits that an index takes. */
  get bitWidth(): number {
    return Math.max(1, 32 - Math.clz32(Math.max(0, this.count - 1)));
  }

  /** The value's index; a new value gets the next one. */
  indexOf(value: T): number {
    return this.indexes.get(value) ?? this.add(value);
  }

  /** Lets go of what finding values takes: none will be looked for any more. */
  close(): void {
    this.indexes.clear();
  }

  encode(): EncodedPage {
    return encodePage(this.values.view(), {
      type: 'DICTIONARY_PAGE',
      dictionary_page_header: { num_values: this.count, encoding: 'PLAIN' },
    });
  }

  private add(value: T): number {
    const index = this.count++;
    const start = this.values.length;
    this.indexes.set(this.encoding.own?.(value) ?? value, index);
    this.encoding.append(this.values, value, index);
    const statistic = this.encoding.statistic(value);
    if (statistic !== null) this.statistics.seeValue(statistic);
    // Behind the length in four bytes.
    else this.statistics.seeBytes(this.values.view().subarray(start + 4));
    return index;
  }
}
