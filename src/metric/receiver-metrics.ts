import type { ConnectionCounts } from '../component/connection-counts.js';
import type { IntakeCounts } from '../receiver/export-intake.js';
import type { MetricSource } from './metric-source.js';
import type { Sample } from './sample.js';

/** What is known of telemetry that comes in. */
export interface ReceiverMetricsDeps {
  readonly intake: { readonly counts: IntakeCounts; readonly inFlightBytes: number };
  /** By the port's name. */
  readonly connections: () => Readonly<Record<string, ConnectionCounts>>;
}

/** What receivers took and what they did not. */
export function receiverMetrics({ intake, connections }: ReceiverMetricsDeps): MetricSource {
  return { name: 'receiver', read };

  function read(): readonly Sample[] {
    const { accepted, refused } = intake.counts;
    return [
      ...Object.entries(connections()).flatMap(([port, counts]) => connectionSamples(port, counts)),
      ...Object.entries(accepted).flatMap(([signal, one]): readonly Sample[] => [
        { name: 'run_bridge_receiver_accepted_requests_total', value: one.requestCount, labels: { signal } },
        { name: 'run_bridge_receiver_accepted_items_total', value: one.itemCount, labels: { signal } },
        { name: 'run_bridge_receiver_accepted_bytes_total', value: one.bodyBytes, labels: { signal } },
        { name: 'run_bridge_receiver_rejected_items_total', value: one.rejectedCount, labels: { signal } },
      ]),
      ...[...refused].map(
        ([reason, value]): Sample => ({
          name: 'run_bridge_receiver_refused_requests_total',
          value,
          labels: { reason },
        }),
      ),
      { name: 'run_bridge_receiver_in_flight_bytes', value: intake.inFlightBytes, labels: {} },
    ];
  }
}

function connectionSamples(port: string, { openCount, droppedCount }: ConnectionCounts): readonly Sample[] {
  return [
    { name: 'run_bridge_connections', value: openCount, labels: { port } },
    { name: 'run_bridge_dropped_connections_total', value: droppedCount, labels: { port } },
  ];
}
