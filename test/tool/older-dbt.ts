import type { ExportRequest, KeyValue, OtlpSpan } from '../../src/otlp/export-request.js';

/** What differs in a trace of dbt 1.x. */
export interface OlderDbt {
  /** Default `dbt`, which guides tell people to set. */
  readonly service?: string;
  /** Default dbt's own; libraries have others. */
  readonly scope?: string;
  /** Whether the resource says which SDK sent it; a Collector may have taken that away. Default yes. */
  readonly hasLanguage?: boolean;
  readonly traceId?: string;
}

const START = 1_795_221_792_000_000_000n;

/**
 * A trace as dbt 1.12 and newer sends it under OpenTelemetry's agent for Python: `dbt.invocation`, `metadata.setup` and a span
 * for each node, called as the node and linked to those above it. Names, attributes and values are those of public code and guides.
 */
export function olderDbtTrace({
  service = 'dbt',
  scope = 'dbt.runner',
  hasLanguage = true,
  traceId = '0af7651916cd43dd8448eb211c80319c',
}: OlderDbt = {}): ExportRequest {
  const invocation = span(traceId, 1, 'dbt.invocation', {
    command: 'build',
    invocation_id: '5f0c6d0e-6c58-4b6c-9d0b-0c1f4f0a7d11',
    version: '1.12.1',
  });
  const orders = node(traceId, 3, 'model.shop.stg_orders2', 'stg_orders2');
  const customers = node(traceId, 4, 'model.shop.customers', 'customers');
  const link = {
    ...{ traceId, spanId: orders.spanId, traceState: '', droppedAttributesCount: 0, flags: 0 },
    attributes: [{ key: 'upstream.name', value: 'stg_orders2' }],
  };
  const failed = span(traceId, 5, 'test.shop.unique_customers_id.c5af1ff4b1', {
    ...{ unique_id: 'test.shop.unique_customers_id.c5af1ff4b1', name: 'unique_customers_id', node_type: 'test' },
    node_outcome: 'fail',
  });
  const resource: readonly KeyValue[] = [
    { key: 'service.name', value: service },
    { key: 'service.instance.id', value: '627cc493-f310-47de-96bd-71410b7dec09' },
    ...(hasLanguage
      ? [
          { key: 'telemetry.sdk.language', value: 'python' },
          { key: 'telemetry.sdk.name', value: 'opentelemetry' },
          { key: 'telemetry.sdk.version', value: '1.38.0' },
        ]
      : []),
  ];
  return {
    signal: 'traces',
    resources: [
      {
        resource: { attributes: resource, droppedAttributesCount: 0 },
        schemaUrl: '',
        scopes: [
          {
            scope: { name: scope, version: '', attributes: [], droppedAttributesCount: 0 },
            schemaUrl: '',
            records: [
              span(traceId, 2, 'metadata.setup', {}),
              orders,
              { ...customers, links: [link] },
              failed,
              invocation,
            ],
          },
        ],
      },
    ],
  };
}

function node(traceId: string, id: number, uniqueId: string, name: string): OtlpSpan {
  return span(traceId, id, uniqueId, {
    ...{ unique_id: uniqueId, name, node_type: 'model', node_outcome: 'success', materialization: 'table' },
    ...{ database: 'warehouse', schema: 'main', identifier: name, relative_path: `models/${name}.sql` },
  });
}

function span(traceId: string, id: number, name: string, attributes: Readonly<Record<string, string>>): OtlpSpan {
  return {
    ...{ traceId, spanId: id.toString(16).padStart(16, '0'), traceState: '', flags: 1, name, kind: 1 },
    parentSpanId: id === 1 ? '' : '0000000000000001',
    startTimeUnixNano: START + BigInt(id),
    endTimeUnixNano: START + BigInt(id) + 1_000n,
    attributes: Object.entries(attributes).map(([key, value]) => ({ key, value })),
    ...{ droppedAttributesCount: 0, events: [], droppedEventsCount: 0, links: [], droppedLinksCount: 0 },
    status: { code: 1, message: '' },
  };
}
