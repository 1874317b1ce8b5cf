import { loadTls, type SignalEndpoint } from '../config/destination-config.js';
import type { Clock } from '../core/clock.js';
import type { SendResult } from './destination.js';
import { CONTENT_TYPES, HttpTransport, readErrorResponse } from './otlp-destination.js';

/** Posts metrics to one destination. */
export interface MetricSender {
  /** Sends one `ExportMetricsServiceRequest` in the endpoint's encoding; never throws. */
  send(body: Uint8Array, abort: AbortSignal): Promise<SendResult>;
  close(): void;
}

/** Opens the connection to where metrics go. @throws Error when a certificate or key file cannot be read */
export async function openMetricSender(
  { url, headers, timeoutMs, compression, encoding, tls }: SignalEndpoint,
  userAgent: string,
  clock: Clock,
): Promise<MetricSender> {
  return new HttpTransport(
    {
      url: new URL(url),
      headers: { 'user-agent': userAgent, ...headers, 'content-type': CONTENT_TYPES[encoding] },
      ...{ timeoutMs, compression, tls: await loadTls(tls) },
      // What a receiver leaves out of cumulative values comes again with the next ones.
      readAccepted: () => ({ rejectedCount: 0, message: '' }),
      readError: readErrorResponse,
    },
    clock,
  );
}
