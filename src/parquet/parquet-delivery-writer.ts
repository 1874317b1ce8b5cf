import type { Delivery } from '../record/record-consumer.js';
import type { DeliveryWriter } from '../sink/delivery-writer.js';
import { ParquetWriter } from './parquet-writer.js';

/** Writes the records of deliveries as one Parquet file. Telemetry of other services has no place there and is left out. */
export class ParquetDeliveryWriter implements DeliveryWriter {
  /** @throws when the file cannot be created. */
  static async create(path: string): Promise<ParquetDeliveryWriter> {
    return new ParquetDeliveryWriter(await ParquetWriter.create(path));
  }

  private constructor(private readonly writer: ParquetWriter) {}

  async write({ batches }: Delivery): Promise<void> {
    for (const { records } of batches) await this.writer.append(records);
  }

  async close(): Promise<void> {
    await this.writer.close();
  }

  abort(): Promise<void> {
    return this.writer.abort();
  }
}
