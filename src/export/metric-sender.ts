import type { SignalEndpoint } from '../config/destination-config.js';
import type { Clock } from '../core/clock.js';
import type { SendResult } from './destination.js';
import { NOTHING_REJECTED, openTransport } from './otlp-destination.js';

/** Posts metrics to one destination. */
export interface MetricSender {
  /** Sends one `ExportMetricsServiceRequest` in the endpoint's encoding; never throws. */
  send(body: Uint8Array, abort: AbortSignal): Promise<SendResult>;
  close(): void;
}

/** Opens the connection to where metrics go. @throws Error when a certificate or key file cannot be read */
export function openMetricSender(endpoint: SignalEndpoint, userAgent: string, clock: Clock): Promise<MetricSender> {
  // What a receiver leaves out of cumulative values comes again with the next ones.
  return openTransport(endpoint, { userAgent, clock }, () => NOTHING_REJECTED);
}
