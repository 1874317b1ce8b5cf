import type { HealthState } from '../core/health.js';
import type { DestinationStatus } from '../export/destination.js';

/** The state of a destination in `/readyz`. A destination that is down is no reason to send telemetry elsewhere: the bridge stores it. */
export function exportHealth(status: DestinationStatus | undefined): HealthState {
  if (status === undefined) return { ready: true, details: { state: 'starting' } };
  const { name: _name, signals, ...details } = status;
  const { traces, logs } = signals;
  const counts = {
    sentSpanCount: traces.sentCount,
    sentLogCount: logs.sentCount,
    refusedCount: traces.refusedCount + logs.refusedCount,
    rejectedCount: traces.rejectedCount + logs.rejectedCount,
    failedAttemptCount: traces.failedAttemptCount + logs.failedAttemptCount,
  };
  return { ready: true, details: { ...details, ...counts } };
}
