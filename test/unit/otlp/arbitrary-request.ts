import fc from 'fast-check';
import type {
  AnyValue,
  ExportRequest,
  KeyValue,
  OtlpLogRecord,
  OtlpResource,
  OtlpScope,
  OtlpSpan,
  ResourceGroup,
} from '../../../src/otlp/export-request.js';

const text = fc.string({ unit: 'binary', maxLength: 12 });
const uint32 = fc.integer({ min: 0, max: 2 ** 32 - 1 });
const int32 = fc.integer({ min: -(2 ** 31), max: 2 ** 31 - 1 });
const uint64 = fc.bigInt({ min: 0n, max: 2n ** 64n - 1n });
const int64 = fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n });
const id = fc.uint8Array({ maxLength: 17 }).map((bytes) => Buffer.from(bytes).toString('hex'));

const { value } = fc.letrec<{ value: AnyValue; attribute: KeyValue }>((tie) => ({
  value: fc.oneof(
    { depthSize: 'small', maxDepth: 5 },
    fc.constant(null),
    text,
    fc.boolean(),
    int64,
    fc.double(),
    fc.uint8Array({ maxLength: 5 }),
    fc.array(tie('value'), { maxLength: 3 }),
    fc.record({ entries: fc.array(tie('attribute'), { maxLength: 3 }) }),
  ),
  attribute: fc.record({ key: text, value: tie('value') }),
}));
const attributes = fc.array(fc.record({ key: text, value }), { maxLength: 4 });

const keys = fc.array(text, { maxLength: 2 });
const entityRef = fc.record({ schemaUrl: text, type: text, idKeys: keys, descriptionKeys: keys });
const resource: fc.Arbitrary<OtlpResource> = fc.record(
  { attributes, droppedAttributesCount: uint32, entityRefs: fc.array(entityRef, { minLength: 1, maxLength: 2 }) },
  { requiredKeys: ['attributes', 'droppedAttributesCount'] },
);
const scope: fc.Arbitrary<OtlpScope> = fc.record({
  name: text,
  version: text,
  attributes,
  droppedAttributesCount: uint32,
});

const span: fc.Arbitrary<OtlpSpan> = fc.record({
  traceId: id,
  spanId: id,
  traceState: text,
  parentSpanId: id,
  flags: uint32,
  name: text,
  kind: int32,
  startTimeUnixNano: uint64,
  endTimeUnixNano: uint64,
  attributes,
  droppedAttributesCount: uint32,
  events: fc.array(fc.record({ timeUnixNano: uint64, name: text, attributes, droppedAttributesCount: uint32 }), {
    maxLength: 2,
  }),
  droppedEventsCount: uint32,
  links: fc.array(
    fc.record({
      traceId: id,
      spanId: id,
      traceState: text,
      attributes,
      droppedAttributesCount: uint32,
      flags: uint32,
    }),
    { maxLength: 2 },
  ),
  droppedLinksCount: uint32,
  status: fc.option(fc.record({ code: int32, message: text })),
});

const logRecord: fc.Arbitrary<OtlpLogRecord> = fc.record({
  timeUnixNano: uint64,
  observedTimeUnixNano: uint64,
  severityNumber: int32,
  severityText: text,
  body: value,
  attributes,
  droppedAttributesCount: uint32,
  flags: uint32,
  traceId: id,
  spanId: id,
  eventName: text,
});

function groups<T>(records: fc.Arbitrary<T>): fc.Arbitrary<ResourceGroup<T>[]> {
  const scopes = fc.array(fc.record({ scope, schemaUrl: text, records: fc.array(records, { maxLength: 3 }) }), {
    maxLength: 2,
  });
  return fc.array(fc.record({ resource, schemaUrl: text, scopes }), { maxLength: 2 });
}

/** Any request that OTLP can carry, in its whole value ranges. */
export const arbitraryRequest: fc.Arbitrary<ExportRequest> = fc.oneof(
  groups(span).map((resources): ExportRequest => ({ signal: 'traces', resources })),
  groups(logRecord).map((resources): ExportRequest => ({ signal: 'logs', resources })),
);
