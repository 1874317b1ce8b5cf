import type { DecodedRequest, RequestDecoder } from '../../src/decode/request-decoder.js';
import type { ExportRequest } from '../../src/otlp/export-request.js';
import { JsonCodec } from '../../src/otlp/json-codec.js';
import { parseSpanId, parseTraceId } from '../../src/record/ids.js';

/** Takes every request as another service's telemetry; spans without valid ids count as rejected. */
export class ForeignDecoder implements RequestDecoder {
  private readonly codec = new JsonCodec();

  decode(request: ExportRequest): DecodedRequest {
    const ids = idsOf(request);
    const rejectedCount = ids.filter(([traceId, spanId]) => !parseTraceId(traceId) || !parseSpanId(spanId)).length;
    const recordCount = ids.length - rejectedCount;
    const body = new TextDecoder().decode(this.codec.encode(request));
    return {
      delivery: { batches: [], foreign: recordCount === 0 ? [] : [{ signal: request.signal, body, recordCount }] },
      rejectedCount,
      rejectionMessage: rejectedCount === 0 ? '' : 'without a valid id',
    };
  }
}

function idsOf(request: ExportRequest): [traceId: string, spanId: string][] {
  return request.resources
    .flatMap((resource) =>
      resource.scopes.flatMap((scope): readonly { traceId: string; spanId: string }[] => scope.records),
    )
    .map((record) => [record.traceId, record.spanId]);
}
