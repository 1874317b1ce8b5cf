import type protobuf from 'protobufjs';
import { loadProtoFiles } from './proto-files.js';

/**
 * Reads OTLP's messages, and the status that gRPC answers with, from their .proto files, about 10 ms in a fresh process. The build calls
 * it once and puts what it returns in its place (`build/bundle.mjs`): no start reads the files.
 * @throws Error when one is missing or damaged.
 */
export function readOtlpMessages(): protobuf.INamespace {
  const root = loadProtoFiles([
    'opentelemetry/proto/collector/trace/v1/trace_service.proto',
    'opentelemetry/proto/collector/logs/v1/logs_service.proto',
    'google/rpc/status.proto',
  ]);
  return root.toJSON();
}
