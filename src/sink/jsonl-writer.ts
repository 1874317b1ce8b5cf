import type { Delivery } from '../record/record-consumer.js';
import { formatRecordLine } from '../record/record-line.js';
import type { DeliveryWriter } from './delivery-writer.js';
import { ReplacingFile } from './replacing-file.js';

/** Writes records as the engine's JSONL. Telemetry of other services has no place there and is left out. */
export class JsonlWriter implements DeliveryWriter {
  /** @throws when the file cannot be created. */
  static async create(path: string): Promise<JsonlWriter> {
    return new JsonlWriter(await ReplacingFile.create(path));
  }

  private constructor(private readonly file: ReplacingFile) {}

  async write({ batches }: Delivery): Promise<void> {
    const lines = batches.flatMap(({ records }) => records.map((record) => `${formatRecordLine(record)}\n`));
    if (lines.length > 0) await this.file.write(Buffer.from(lines.join('')));
  }

  close(): Promise<void> {
    return this.file.commit();
  }

  abort(): Promise<void> {
    return this.file.abort();
  }
}
