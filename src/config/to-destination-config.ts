import type { DestinationConfig, SignalEndpoint } from '../export/destination-config.js';
import type { Signal } from '../record/record-batch.js';
import type { DestinationSettings } from './destination-settings.js';

/** A destination of the configuration file as the exporter takes it: each signal with its own URL. */
export function toDestinationConfig(settings: DestinationSettings): DestinationConfig {
  const own = { traces: settings.tracesEndpoint, logs: settings.logsEndpoint };
  const endpoints: Partial<Record<Signal, SignalEndpoint>> = {};
  for (const signal of settings.signals) {
    const url = own[signal] ?? appendPath(settings.endpoint, signal);
    if (url === null) continue;
    endpoints[signal] = {
      url,
      headers: settings.headers,
      timeoutMs: settings.timeoutMs,
      compression: settings.compression,
      encoding: settings.protocol === 'http/protobuf' ? 'protobuf' : 'json',
      tls: {},
    };
  }
  const { name, redaction, mapping, resource, maxBacklogAgeMs } = settings;
  return {
    ...{ name, endpoints, redaction, mapping, resource, usesSdk: settings.protocol === 'sdk' },
    ...(maxBacklogAgeMs === null ? {} : { maxBacklogAgeMs }),
  };
}

function appendPath(base: string | null, signal: Signal): string | null {
  if (base === null) return null;
  const url = new URL(base);
  url.pathname = `${url.pathname.replace(/\/+$/, '')}/v1/${signal}`;
  return url.href;
}
