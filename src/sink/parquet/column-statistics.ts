import type { Statistics } from 'hyparquet';
import type { StatisticValue } from './plain-encoding.js';

/** The least and greatest value and the number of nulls of a column chunk, by which readers skip row groups. */
export class ColumnStatistics {
  nullCount = 0;
  private least: StatisticValue | Buffer | null = null;
  private greatest: StatisticValue | Buffer | null = null;
  private isComplete = true;

  /** Considers a number or boolean. */
  seeValue(value: StatisticValue): void {
    if (this.least === null || value < this.least) this.least = value;
    if (this.greatest === null || value > this.greatest) this.greatest = value;
  }

  /** Considers a text by its UTF-8 bytes, whose order is the one that Parquet means. The bytes are copied. */
  seeBytes(bytes: Buffer): void {
    if (!Buffer.isBuffer(this.least) || bytes.compare(this.least) < 0) this.least = Buffer.from(bytes);
    if (!Buffer.isBuffer(this.greatest) || bytes.compare(this.greatest) > 0) this.greatest = Buffer.from(bytes);
  }

  /** Some values will not be considered: there will be no least and no greatest. */
  giveUp(): void {
    this.isComplete = false;
  }

  toParquet(): Statistics {
    const counted: Statistics = { null_count: BigInt(this.nullCount) };
    if (!this.isComplete || this.least === null || this.greatest === null) return counted;
    return { ...counted, min_value: this.least, max_value: this.greatest };
  }
}
