import type protobuf from 'protobufjs';
import { reasonOf } from '../component/reason-of.js';
import type { Signal } from '../record/record-batch.js';
import type { ExportRequest } from './export-request.js';
import { logsFromWire, tracesFromWire, WireReader } from './from-wire.js';
import { type OtlpCodec, OtlpDecodeError } from './otlp-codec.js';
import { requestToWire, type WireSpelling } from './to-wire.js';
import { loadWireTypes, type WireInt64, type WireLogsRequest, type WireTracesRequest } from './wire-messages.js';

/**
 * OTLP's binary encoding. A known field with the wrong wire type counts as unknown and is passed over, as protobuf
 * has it; what cannot be read at all (a length beyond the body, a broken varint, an unfinished group, more than 100
 * nested messages) is an OtlpDecodeError. Creating one reads OTLP's .proto files, about 10 ms: keep it.
 */
export class ProtobufCodec implements OtlpCodec {
  readonly encoding = 'protobuf';
  private readonly types = loadWireTypes();

  decode(signal: Signal, body: Uint8Array): ExportRequest {
    try {
      // protobufjs cannot know its messages' types statically; the .proto files are what these interfaces say.
      const message: unknown = this.types.request[signal].decode(WireReader.of(body));
      return signal === 'traces'
        ? tracesFromWire(message as WireTracesRequest)
        : logsFromWire(message as WireLogsRequest);
    } catch (cause) {
      if (cause instanceof OtlpDecodeError) throw cause;
      const reason = reasonOf(cause);
      throw new OtlpDecodeError(
        `The body is not an OTLP ${signal} request in protobuf: ${reason} (body of ${body.byteLength} bytes).`,
        { cause },
      );
    }
  }

  encode(request: ExportRequest): Uint8Array {
    return finish(this.types.request[request.signal], requestToWire(request, PROTOBUF_SPELLING));
  }

  encodeResponse(signal: Signal, rejectedCount: number, message: string): Uint8Array {
    const response =
      rejectedCount === 0 && message === ''
        ? {}
        : {
            partialSuccess:
              signal === 'traces'
                ? { rejectedSpans: rejectedCount, errorMessage: message }
                : { rejectedLogRecords: rejectedCount, errorMessage: message },
          };
    return finish(this.types.response[signal], response);
  }

  encodeStatus(code: number, message: string): Uint8Array {
    return finish(this.types.status, { code, message });
  }
}

const PROTOBUF_SPELLING: WireSpelling = {
  id: (hex) => Buffer.from(hex, 'hex'),
  int64: (value): WireInt64 => ({
    low: Number(BigInt.asIntN(32, value)),
    high: Number(BigInt.asIntN(32, value >> 32n)),
  }),
  double: (value) => value,
  bytes: (value) => value,
};

function finish(type: protobuf.Type, message: Readonly<Record<string, unknown>>): Uint8Array {
  return type.encode(message).finish();
}
