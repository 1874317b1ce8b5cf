import { reasonOf } from '../component/reason-of.js';
import type { JsonValue } from '../record/json.js';
import type { Signal } from '../record/record-batch.js';
import type { ExportRequest } from './export-request.js';
import { checkJsonFieldCount } from './field-count.js';
import { logsFromJson, tracesFromJson } from './from-json.js';
import { quoteLongIntegers } from './long-integers.js';
import { type OtlpCodec, OtlpDecodeError } from './otlp-codec.js';
import { requestToWire, type WireSpelling } from './to-wire.js';

/**
 * OTLP's JSON encoding: protobuf's JSON mapping with ids in hexadecimal and enums as integers. Read generously
 * (64-bit numbers as strings or numbers, names in either case, unknown keys passed over); written on one line.
 */
export class JsonCodec implements OtlpCodec {
  readonly encoding = 'json';
  private readonly decoder = new TextDecoder();
  private readonly encoder = new TextEncoder();

  decode(signal: Signal, body: Uint8Array): ExportRequest {
    checkJsonFieldCount(body);
    const document = this.parse(signal, body);
    return signal === 'traces' ? tracesFromJson(document) : logsFromJson(document);
  }

  encode(request: ExportRequest): Uint8Array {
    return this.write(requestToWire(request, JSON_SPELLING));
  }

  encodeResponse(signal: Signal, rejectedCount: number, message: string): Uint8Array {
    if (rejectedCount === 0 && message === '') return this.write({});
    const rejected = String(rejectedCount);
    return this.write({
      partialSuccess:
        signal === 'traces'
          ? { rejectedSpans: rejected, errorMessage: message }
          : { rejectedLogRecords: rejected, errorMessage: message },
    });
  }

  encodeStatus(code: number, message: string): Uint8Array {
    return this.write({ code, message });
  }

  private parse(signal: Signal, body: Uint8Array): JsonValue {
    try {
      return JSON.parse(quoteLongIntegers(this.decoder.decode(body)));
    } catch (cause) {
      // A SyntaxError, or a RangeError for nesting that exhausts the parser's stack.
      const reason = reasonOf(cause);
      throw new OtlpDecodeError(`The body is not an OTLP ${signal} request in JSON: ${reason}.`, { cause });
    }
  }

  private write(message: unknown): Uint8Array {
    return this.encoder.encode(JSON.stringify(message));
  }
}

const JSON_SPELLING: WireSpelling = {
  id: (hex) => hex,
  int64: (value) => value.toString(),
  // JSON has no spelling for these, and `JSON.stringify` drops the sign of -0.
  double: (value) =>
    Number.isFinite(value) && !Object.is(value, -0) ? value : Object.is(value, -0) ? '-0' : String(value),
  bytes: (value) => Buffer.from(value.buffer, value.byteOffset, value.byteLength).toString('base64'),
};
