import type { DiskUsage, MemoryUsage } from '../core/guard.js';
import type { Health } from '../core/health.js';
import type { ConnectionCounts } from '../core/http-listener.js';
import type { DestinationStatus, SignalStatus } from '../export/feature.js';
import type { SightingKind } from '../otlp/engine-sightings.js';
import type { IntakeCounts } from '../receiver/feature.js';
import type { Signal } from '../record/record-batch.js';
import { type MetricSource, type Sample, stateSamples } from './samples.js';

/** The sources of the process's metrics. */
export interface ProcessMetricsDeps {
  /** The program's version. */
  readonly version: string;
  readonly startedUnixMs: number;
  readonly memory: { readonly usage: MemoryUsage };
  /** Stored data; `undefined` if this process stores nothing. */
  readonly kept: KeptMetricsDeps | undefined;
}

/** The sources of metrics about stored data. */
export interface KeptMetricsDeps {
  readonly disk: { readonly usage: DiskUsage };
  /** The runs that have not ended. */
  readonly runs: { readonly openCount: number };
  readonly notes: { readonly setAsideCount: number };
}

/** Reads the memory, disk and activity of this process. */
export function processMetrics({ version, startedUnixMs, memory, kept }: ProcessMetricsDeps): MetricSource {
  return { name: 'process', read };

  function read(): readonly Sample[] {
    const { usedBytes, residentBytes, limitBytes } = memory.usage;
    const labels = {};
    return [
      { name: 'run_bridge_build_info', value: 1, labels: { version } },
      { name: 'run_bridge_start_time_seconds', value: startedUnixMs / 1_000, labels },
      { name: 'run_bridge_memory_used_bytes', value: usedBytes, labels },
      { name: 'run_bridge_memory_resident_bytes', value: residentBytes, labels },
      { name: 'run_bridge_memory_limit_bytes', value: limitBytes, labels },
      ...(kept === undefined ? [] : keptSamples(kept)),
    ];
  }
}

function keptSamples({ disk: { usage }, runs, notes }: KeptMetricsDeps): readonly Sample[] {
  const labels = {};
  return [
    { name: 'run_bridge_open_runs', value: runs.openCount, labels },
    { name: 'run_bridge_runs_set_aside', value: notes.setAsideCount, labels },
    { name: 'run_bridge_disk_free_bytes', value: usage.freeBytes, labels },
    { name: 'run_bridge_disk_size_bytes', value: usage.totalBytes, labels },
    { name: 'run_bridge_disk_reserve_bytes', value: usage.reserveBytes, labels },
    ...ifKnown('run_bridge_data_folder_used_bytes', usage.usedBytes),
    ...ifKnown('run_bridge_data_folder_limit_bytes', usage.limitBytes),
  ];
}

function ifKnown(
  name: 'run_bridge_data_folder_used_bytes' | 'run_bridge_data_folder_limit_bytes',
  value: number | undefined,
): readonly Sample[] {
  return value === undefined ? [] : [{ name, value, labels: {} }];
}

/** Reads the readiness as in `/readyz`: overall, and of each part. */
export function healthMetrics(health: Pick<Health, 'report'>): MetricSource {
  return { name: 'health', read };

  function read(): readonly Sample[] {
    const { ready, checks } = health.report();
    return [
      { name: 'run_bridge_ready', value: Number(ready), labels: {} },
      ...checks.map(
        ({ name: check, state }): Sample => ({
          name: 'run_bridge_check_ready',
          value: Number(state.ready),
          labels: { check },
        }),
      ),
    ];
  }
}

/** The sources of metrics about incoming telemetry. */
export interface ReceiverMetricsDeps {
  readonly intake: { readonly counts: IntakeCounts; readonly inFlightBytes: number };
  /** Telemetry that may or may not be the engine's; `undefined` if no telemetry is decoded here. */
  readonly sightings: { countOf(kind: SightingKind, signal: Signal): number } | undefined;
  /** The numbers of connections by port. */
  readonly connections: () => Readonly<Record<string, ConnectionCounts>>;
}

/** Reads the accepted and refused requests of the receivers. */
export function receiverMetrics({ intake, sightings, connections }: ReceiverMetricsDeps): MetricSource {
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
      ...(sightings === undefined ? [] : SIGNALS.flatMap((signal) => sightingSamples(sightings, signal))),
    ];
  }
}

const SIGNALS: readonly Signal[] = ['traces', 'logs'];

function sightingSamples(sightings: NonNullable<ReceiverMetricsDeps['sightings']>, signal: Signal): readonly Sample[] {
  return [
    { name: 'run_bridge_receiver_new_name_items_total', value: sightings.countOf('new', signal), labels: { signal } },
    {
      name: 'run_bridge_receiver_passed_engine_items_total',
      value: sightings.countOf('passed', signal),
      labels: { signal },
    },
  ];
}

function connectionSamples(port: string, { openCount, droppedCount }: ConnectionCounts): readonly Sample[] {
  return [
    { name: 'run_bridge_connections', value: openCount, labels: { port } },
    { name: 'run_bridge_dropped_connections_total', value: droppedCount, labels: { port } },
  ];
}

const STATES: readonly DestinationStatus['state'][] = ['idle', 'sending', 'waiting', 'stopped'];
const SIGNAL_STATES: readonly SignalStatus['state'][] = ['ready', 'waiting', 'off'];

/** Reads the last known progress of each destination. */
export function destinationMetrics(statuses: () => readonly DestinationStatus[]): MetricSource {
  return { name: 'destinations', read: () => statuses().flatMap(samplesOf) };
}

function samplesOf(status: DestinationStatus): readonly Sample[] {
  const { name: destination, signals } = status;
  const labels = { destination };
  return [
    ...stateSamples(
      STATES,
      status.state,
      (state, value): Sample => ({ name: 'run_bridge_destination_state', value, labels: { destination, state } }),
    ),
    { name: 'run_bridge_destination_pending_runs', value: status.pendingRuns, labels },
    { name: 'run_bridge_destination_lag_bytes', value: status.lagBytes, labels },
    { name: 'run_bridge_destination_oldest_unsent_age_seconds', value: status.oldestUnsentSeconds, labels },
    { name: 'run_bridge_destination_given_up_runs_total', value: status.givenUpRunCount, labels },
    ...signalSamples(destination, 'traces', signals.traces, status.givenUpSpanCount),
    ...signalSamples(destination, 'logs', signals.logs, status.givenUpLogCount),
  ];
}

function signalSamples(
  destination: string,
  signal: string,
  status: SignalStatus,
  givenUpCount: number,
): readonly Sample[] {
  const labels = { destination, signal };
  return [
    ...stateSamples(
      SIGNAL_STATES,
      status.state,
      (state, value): Sample => ({
        name: 'run_bridge_destination_signal_state',
        value,
        labels: { ...labels, state },
      }),
    ),
    { name: 'run_bridge_destination_sent_items_total', value: status.sentCount, labels },
    { name: 'run_bridge_destination_forwarded_messages_total', value: status.forwardedCount, labels },
    { name: 'run_bridge_destination_refused_items_total', value: status.refusedCount, labels },
    { name: 'run_bridge_destination_rejected_items_total', value: status.rejectedCount, labels },
    { name: 'run_bridge_destination_failed_attempts_total', value: status.failedAttemptCount, labels },
    { name: 'run_bridge_destination_given_up_items_total', value: givenUpCount, labels },
  ];
}
