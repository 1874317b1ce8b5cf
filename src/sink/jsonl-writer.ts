import type { Delivery } from '../record/record-consumer.js';
import { formatRecordLine } from '../record/record-line.js';
import type { DeliveryWriter } from './delivery-writer.js';
import { ReplacingFile } from './replacing-file.js';

/** Text that is written at a time, in UTF-16 units; a longer line is written alone. */
const WRITE_LENGTH = 256 * 1024;

/** Writes records as the engine's JSONL. Telemetry of other services has no place there and is left out. */
export class JsonlWriter implements DeliveryWriter {
  /** @throws when the file cannot be created. */
  static async create(path: string): Promise<JsonlWriter> {
    return new JsonlWriter(await ReplacingFile.create(path));
  }

  private constructor(private readonly file: ReplacingFile) {}

  async write({ batches }: Delivery): Promise<void> {
    let text = '';
    for (const { records } of batches) {
      for (const record of records) {
        text += `${formatRecordLine(record)}\n`;
        if (text.length < WRITE_LENGTH) continue;
        await this.file.write(Buffer.from(text));
        text = '';
      }
    }
    if (text !== '') await this.file.write(Buffer.from(text));
  }

  close(): Promise<void> {
    return this.file.commit();
  }

  abort(): Promise<void> {
    return this.file.abort();
  }
}
