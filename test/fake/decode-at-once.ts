import type { ExportRequest } from '../../src/otlp/export-request.js';
import { JsonCodec } from '../../src/otlp/json-codec.js';
import { ProtobufCodec } from '../../src/otlp/protobuf-codec.js';
import { type DecodedRequest, type LargeBodyDecoder, WireDecoder } from '../../src/otlp/wire/wire-decoder.js';
import type { Signal } from '../../src/record/record-batch.js';

/** Decodes a body without giving anybody else a turn. */
export function decodeAtOnce(decoder: LargeBodyDecoder, body: Uint8Array): DecodedRequest {
  const steps = decoder.decodeInSteps(body);
  for (let step = steps.next(); ; step = steps.next()) if (step.done === true) return step.value;
}

const codecs = { protobuf: new ProtobufCodec(), json: new JsonCodec() };
const decoders = { traces: new WireDecoder('traces', codecs), logs: new WireDecoder('logs', codecs) };

/** The records of a body in protobuf; nobody gives their memory back, so they may be kept. */
export function decodeBody(signal: Signal, body: Uint8Array): DecodedRequest {
  return decoders[signal].decode(body);
}

/** The same of a request. */
export function decodeRequest(request: ExportRequest): DecodedRequest {
  return decodeBody(request.signal, codecs.protobuf.encode(request));
}
