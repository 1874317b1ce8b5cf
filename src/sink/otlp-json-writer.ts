import { RecordsToRequests } from '../decode/records-to-request.js';
import type { ExportRequest } from '../otlp/export-request.js';
import type { OtlpCodec } from '../otlp/otlp-codec.js';
import type { Delivery } from '../record/record-consumer.js';
import type { DeliveryWriter } from './delivery-writer.js';
import { ReplacingFile } from './replacing-file.js';

const LINE_BREAK = Buffer.from('\n');

/**
 * Writes records as OTLP JSON lines: each line one export request. Telemetry of other services is written as it came.
 * Holds the starts of spans that have not ended yet.
 */
export class OtlpJsonWriter implements DeliveryWriter {
  private readonly requests = new RecordsToRequests();

  /**
   * @param json OTLP's JSON
   * @throws when the file cannot be created.
   */
  static async create(path: string, json: OtlpCodec): Promise<OtlpJsonWriter> {
    return new OtlpJsonWriter(await ReplacingFile.create(path), json);
  }

  private constructor(
    private readonly file: ReplacingFile,
    private readonly json: OtlpCodec,
  ) {}

  async write({ batches, foreign }: Delivery): Promise<void> {
    for (const batch of batches) await this.writeRequests(this.requests.push(batch));
    for (const { body } of foreign) await this.file.write(Buffer.from(body), LINE_BREAK);
  }

  async close(): Promise<void> {
    await this.writeRequests(this.requests.finish());
    await this.file.commit();
  }

  abort(): Promise<void> {
    return this.file.abort();
  }

  private async writeRequests(requests: readonly ExportRequest[]): Promise<void> {
    if (requests.length === 0) return;
    await this.file.write(...requests.flatMap((request) => [this.json.encode(request), LINE_BREAK]));
  }
}
