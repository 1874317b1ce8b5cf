import type { DestinationStatus, SignalStatus } from '../exporter/destination.js';
import type { MetricSource } from './metric-source.js';
import type { Sample } from './sample.js';
import { stateSamples } from './state-samples.js';

const STATES: readonly DestinationStatus['state'][] = ['idle', 'sending', 'waiting', 'stopped'];
const SIGNAL_STATES: readonly SignalStatus['state'][] = ['ready', 'waiting', 'off'];

/** How far each destination has got, as it was a moment ago. */
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
