import { PublicAttributeSchema } from '../../../src/decode/attribute-schema.js';
import { OtlpRequestDecoder } from '../../../src/decode/otlp-request-decoder.js';
import { JsonCodec } from '../../../src/otlp/json-codec.js';
import { ProtobufCodec } from '../../../src/otlp/protobuf-codec.js';
import { formatRecordLine, parseRecordLine } from '../../../src/record/record-line.js';
import { type Resource, UNKNOWN_RESOURCE } from '../../../src/record/resource.js';
import type { TelemetryRecord } from '../../../src/record/telemetry-record.js';
import { PublicSchema } from '../../../src/schema/public-schema.js';
import type { LoggedRecord } from '../../../src/sink/record-log.js';
import { sampleBodies, sampleLines } from '../../fake/sample-run.js';

/** Records as a record log would hold them. */
export function logged(records: readonly TelemetryRecord[], resource: Resource = UNKNOWN_RESOURCE): LoggedRecord[] {
  let offset = 0;
  return records.map((record) => {
    const endOffset = offset + Buffer.byteLength(formatRecordLine(record)) + 1;
    const item = { record, resource, offset, endOffset };
    offset = endOffset;
    return item;
  });
}

/** A sample as its JSONL file brings it. */
export function fromJsonl(run: string): LoggedRecord[] {
  return logged(sampleLines(run).map(parseRecordLine));
}

const schema = new PublicAttributeSchema(PublicSchema.load());
const protobuf = new ProtobufCodec();
const decoder = new OtlpRequestDecoder(schema, new JsonCodec());

/**
 * A sample as its OTLP bodies bring it, in the order in which they came.
 * @param bodyCount how many of the bodies came; all when left out
 */
export function fromOtlp(run: string, bodyCount = Number.POSITIVE_INFINITY): LoggedRecord[] {
  let offset = 0;
  return sampleBodies(run)
    .slice(0, bodyCount)
    .flatMap(({ signal, body }) =>
      decoder
        .decode(protobuf.decode(signal, body))
        .delivery.batches.flatMap(({ resource, records }) => records.map((record) => ({ record, resource }))),
    )
    .map(({ record, resource }) => {
      const endOffset = offset + Buffer.byteLength(formatRecordLine(record)) + 1;
      const item = { record, resource, offset, endOffset };
      offset = endOffset;
      return item;
    });
}

export function bodyCount(run: string): number {
  return sampleBodies(run).length;
}
