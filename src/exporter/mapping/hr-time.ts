import type { HrTime } from '@opentelemetry/api';
import type { UnixNano } from '../../record/unix-nano.js';

const NANOS_PER_SECOND = 1_000_000_000n;

/** OTel's time, whole seconds and nanoseconds, of nanoseconds; exact. Also for durations. */
export function hrTimeOf(nanos: UnixNano): HrTime {
  return [Number(nanos / NANOS_PER_SECOND), Number(nanos % NANOS_PER_SECOND)];
}

/** Whether one time is before another, each in seconds and nanoseconds. */
export function isBefore(seconds: number, nanos: number, thanSeconds: number, thanNanos: number): boolean {
  return seconds < thanSeconds || (seconds === thanSeconds && nanos < thanNanos);
}
