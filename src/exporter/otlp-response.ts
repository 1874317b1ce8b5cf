import {
  JsonLogsSerializer,
  JsonTraceSerializer,
  ProtobufLogsSerializer,
  ProtobufTraceSerializer,
} from '@opentelemetry/otlp-transformer';
import protobuf from 'protobufjs';
import type { OtlpEncoding } from '../otlp/otlp-codec.js';
import type { Signal } from '../record/record-batch.js';

/** What a receiver says that it did not take of an accepted request. */
export interface PartialSuccess {
  readonly rejectedCount: number;
  readonly message: string;
}

/** Reads an OTLP export response. @throws when it is none. */
export function readExportResponse(signal: Signal, encoding: OtlpEncoding, body: Uint8Array): PartialSuccess {
  if (body.byteLength === 0) return { rejectedCount: 0, message: '' };
  if (signal === 'traces') {
    const serializer = encoding === 'json' ? JsonTraceSerializer : ProtobufTraceSerializer;
    const { partialSuccess } = serializer.deserializeResponse(body);
    return toPartialSuccess(partialSuccess?.rejectedSpans, partialSuccess?.errorMessage);
  }
  const serializer = encoding === 'json' ? JsonLogsSerializer : ProtobufLogsSerializer;
  const { partialSuccess } = serializer.deserializeResponse(body);
  return toPartialSuccess(partialSuccess?.rejectedLogRecords, partialSuccess?.errorMessage);
}

/** The message of an error answer: a `google.rpc.Status` in either encoding, or a text. @throws when it is neither. */
export function readErrorResponse(body: Uint8Array, contentType: string): string {
  if (contentType.startsWith('application/x-protobuf')) return readStatusMessage(body);
  const text = new TextDecoder().decode(body).trim();
  if (!contentType.startsWith('application/json')) return text;
  const status: unknown = JSON.parse(text);
  const isStatus = typeof status === 'object' && status !== null && 'message' in status;
  return isStatus && typeof status.message === 'string' ? status.message : text;
}

/** The count is an int64, in JSON possibly a string of digits. */
function toPartialSuccess(count: number | string | undefined, message: string | undefined): PartialSuccess {
  const rejectedCount = Number(count ?? 0);
  return {
    rejectedCount: Number.isSafeInteger(rejectedCount) ? Math.max(0, rejectedCount) : 0,
    message: message ?? '',
  };
}

/** `google.rpc.Status`: code 1, message 2, details 3. */
function readStatusMessage(body: Uint8Array): string {
  const reader = protobuf.Reader.create(body);
  let message = '';
  while (reader.pos < reader.len) {
    const tag = reader.uint32();
    if (tag === ((2 << 3) | 2)) message = reader.string();
    else reader.skipType(tag & 7);
  }
  return message;
}
