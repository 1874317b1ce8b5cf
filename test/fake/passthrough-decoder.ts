import type { ExportRequest } from '../../src/otlp/export-request.js';
import { JsonCodec } from '../../src/otlp/json-codec.js';
import type { OtlpCodec } from '../../src/otlp/otlp-codec.js';
import type { BodyDecoder, DecodedRequest } from '../../src/otlp/wire/wire-decoder.js';
import type { Signal } from '../../src/record/record-batch.js';
import { parseSpanId, parseTraceId } from '../../src/record/telemetry-record.js';

const json = new JsonCodec();

/** Takes every request of an encoding as another service's telemetry; spans without valid ids count as rejected. */
export function passthroughBodies(codec: OtlpCodec): Readonly<Record<Signal, BodyDecoder>> {
  const of = (signal: Signal): BodyDecoder => ({ decode: async (body) => decode(codec.decode(signal, body)) });
  return { traces: of('traces'), logs: of('logs') };
}

function decode(request: ExportRequest): DecodedRequest {
  const ids = idsOf(request);
  const rejectedCount = ids.filter(([traceId, spanId]) => !parseTraceId(traceId) || !parseSpanId(spanId)).length;
  const recordCount = ids.length - rejectedCount;
  const body = new TextDecoder().decode(json.encode(request));
  return {
    delivery: { batches: [], passthrough: recordCount === 0 ? [] : [{ signal: request.signal, body, recordCount }] },
    rejectedCount,
    rejectionMessage: rejectedCount === 0 ? '' : 'without a valid id',
  };
}

function idsOf(request: ExportRequest): [traceId: string, spanId: string][] {
  return request.resources
    .flatMap((resource) =>
      resource.scopes.flatMap((scope): readonly { traceId: string; spanId: string }[] => scope.records),
    )
    .map((record) => [record.traceId, record.spanId]);
}
