import protobuf from 'protobufjs';
import { checkFieldCount } from './field-count.js';

/**
 * Reads OTLP's protobuf. It differs from the library's reader in two points. Text that is not UTF-8 gets U+FFFD for
 * each broken part, where proto3 would have the whole request refused: the engine never retries, and one garbled
 * attribute must not cost the batch. And it counts the fields.
 */
export class WireReader extends protobuf.BufferReader {
  static of(body: Uint8Array): WireReader {
    return new WireReader(Buffer.from(body.buffer, body.byteOffset, body.byteLength));
  }

  private fieldCount = 0;

  /** @throws OtlpDecodeError for too many fields. */
  override tag(): number {
    checkFieldCount(++this.fieldCount);
    return super.tag();
  }

  override stringVerify(): string {
    return this.string();
  }
}
