import { ValueType } from '@opentelemetry/api';
import { millisToHrTime } from '@opentelemetry/core';
import { JsonMetricsSerializer, ProtobufMetricsSerializer } from '@opentelemetry/otlp-transformer';
import { resourceFromAttributes } from '@opentelemetry/resources';
import { AggregationTemporality, DataPointType, type MetricData } from '@opentelemetry/sdk-metrics';
import { groupBy } from '../core/lists.js';
import { METRICS, type MetricDefinition } from './metrics.js';
import type { MetricName, Sample } from './samples.js';

/** Names and units of metrics of runs in OTLP: OpenTelemetry's conventions for CI/CD where these have one. */
const OTLP_NAMES: Partial<Record<MetricName, readonly [name: string, unit: string]>> = {
  cicd_pipeline_run_duration_seconds: ['cicd.pipeline.run.duration', 's'],
  cicd_pipeline_run_errors_total: ['cicd.pipeline.run.errors', '{error}'],
  cicd_pipeline_run_active: ['cicd.pipeline.run.active', '{run}'],
  run_bridge_run_last_start_timestamp_seconds: ['run_bridge.run.last_start.timestamp', 's'],
  run_bridge_run_last_end_timestamp_seconds: ['run_bridge.run.last_end.timestamp', 's'],
  run_bridge_run_last_id: ['run_bridge.run.last_id', '1'],
  run_bridge_last_run_duration_seconds: ['run_bridge.last_run.duration', 's'],
  run_bridge_last_run_nodes: ['run_bridge.last_run.nodes', '{node}'],
  run_bridge_last_run_failing_rows: ['run_bridge.last_run.failing_rows', '{row}'],
  run_bridge_last_run_affected_rows: ['run_bridge.last_run.affected_rows', '{row}'],
  run_bridge_last_run_queries: ['run_bridge.last_run.queries', '{query}'],
  run_bridge_last_run_warehouse_seconds: ['run_bridge.last_run.warehouse', 's'],
  run_bridge_last_run_waiting_seconds: ['run_bridge.last_run.waiting', 's'],
  run_bridge_last_run_critical_path_seconds: ['run_bridge.last_run.critical_path', 's'],
  run_bridge_last_run_node_seconds: ['run_bridge.last_run.node', 's'],
};

/** What the conventions count up and down; Prometheus has gauges for it. */
const UP_DOWN_COUNTERS: ReadonlySet<MetricName> = new Set(['cicd_pipeline_run_active']);

/** Names of labels as attributes, those that exported spans have too. */
const OTLP_ATTRIBUTES: Readonly<Record<string, string>> = {
  account: 'run_bridge.account.id',
  project: 'run_bridge.project',
  environment: 'run_bridge.environment',
  cicd_pipeline_name: 'cicd.pipeline.name',
  cicd_pipeline_result: 'cicd.pipeline.result',
  cicd_pipeline_run_state: 'cicd.pipeline.run.state',
  error_type: 'error.type',
  type: 'run_bridge.node.type',
  outcome: 'run_bridge.node.outcome',
  node: 'run_bridge.node.unique_id',
};

/** When the values were read, and since when they are counted. Times are Unix milliseconds. */
export interface MetricPeriod {
  readonly sinceUnixMs: number;
  readonly nowUnixMs: number;
}

/**
 * Encodes metrics of runs as an `ExportMetricsServiceRequest` with cumulative values.
 * @param version the program's
 * @param instance tells programs apart that push to the same place
 */
export function encodeMetrics(
  samples: readonly Sample[],
  period: MetricPeriod,
  {
    version,
    instance,
    encoding,
  }: { readonly version: string; readonly instance: string; readonly encoding: 'protobuf' | 'json' },
): Uint8Array {
  const serializer = encoding === 'json' ? JsonMetricsSerializer : ProtobufMetricsSerializer;
  const attributes = { 'service.name': 'run-bridge', 'service.version': version, 'service.instance.id': instance };
  const metrics = [...groupBy(samples, ({ name }) => name)].flatMap(
    ([name, ofName]) => toMetric(name, ofName, period) ?? [],
  );
  const scopeMetrics = [{ scope: { name: 'run-bridge', version }, metrics }];
  return (
    serializer.serializeRequest({ resource: resourceFromAttributes(attributes), scopeMetrics }) ?? new Uint8Array(0)
  );
}

function toMetric(name: MetricName, samples: readonly Sample[], period: MetricPeriod): MetricData | undefined {
  const [otlpName, unit] = OTLP_NAMES[name] ?? [];
  if (otlpName === undefined || unit === undefined) return undefined;
  const { help, kind, bounds = [] }: MetricDefinition = METRICS[name];
  const common = {
    descriptor: { name: otlpName, description: help, unit, valueType: ValueType.DOUBLE },
    aggregationTemporality: AggregationTemporality.CUMULATIVE,
  };
  const point = <Value>({ labels }: Sample, value: Value) => ({
    startTime: millisToHrTime(period.sinceUnixMs),
    endTime: millisToHrTime(period.nowUnixMs),
    attributes: Object.fromEntries(
      Object.entries(labels).map(([label, text]) => [OTLP_ATTRIBUTES[label] ?? label, text]),
    ),
    value,
  });
  if (bounds.length === 0) {
    const dataPoints = samples.flatMap((sample) =>
      typeof sample.value === 'number' ? [point(sample, sample.value)] : [],
    );
    const isMonotonic = kind === 'counter';
    if (isMonotonic || UP_DOWN_COUNTERS.has(name)) {
      return { ...common, dataPointType: DataPointType.SUM, isMonotonic, dataPoints };
    }
    return { ...common, dataPointType: DataPointType.GAUGE, dataPoints };
  }
  const dataPoints = samples.flatMap((sample) => {
    if (typeof sample.value === 'number') return [];
    const { counts, sum } = sample.value;
    const count = counts.reduce((total, one) => total + one, 0);
    return [point(sample, { buckets: { boundaries: [...bounds], counts: [...counts] }, sum, count })];
  });
  return { ...common, dataPointType: DataPointType.HISTOGRAM, dataPoints };
}
