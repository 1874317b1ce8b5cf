import protobuf from 'protobufjs';

/**
 * Reads OTLP's protobuf. It differs from the library's reader in one point: text that is not UTF-8 gets U+FFFD for
 * each broken part, where proto3 would have the whole request refused. The engine never retries, and one garbled
 * attribute must not cost the batch.
 */
export class WireReader extends protobuf.BufferReader {
  static of(body: Uint8Array): WireReader {
    return new WireReader(Buffer.from(body.buffer, body.byteOffset, body.byteLength));
  }

  override stringVerify(): string {
    return this.string();
  }
}
