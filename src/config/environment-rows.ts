import type { ConfigurationRow } from './configuration.js';
import { formatDuration } from './duration.js';
import { MASK, maskUrl } from './mask.js';
import type { OtlpEnvironment } from './otlp-environment.js';

/** What OpenTelemetry's variables say, as rows of `run-bridge config`; secrets are masked. */
export function environmentRows({ destination, resourceOverrides }: OtlpEnvironment): ConfigurationRow[] {
  const rows: ConfigurationRow[] = Object.entries(resourceOverrides).map(([name, value]) => ({
    name: `resource.${name}`,
    value,
    origin: 'OTEL_SERVICE_NAME, OTEL_RESOURCE_ATTRIBUTES',
  }));
  for (const [signal, endpoint] of Object.entries(destination?.endpoints ?? {})) {
    const row = (name: string, value: string) => ({
      name: `destinations.otlp.${signal}.${name}`,
      value,
      origin: 'OTEL_EXPORTER_OTLP_*',
    });
    rows.push(
      row('url', maskUrl(endpoint.url)),
      ...Object.keys(endpoint.headers).map((name) => row(`headers.${name}`, MASK)),
      row('protocol', `http/${endpoint.encoding}`),
      row('compression', endpoint.compression),
      row('timeout', formatDuration(endpoint.timeoutMs)),
    );
  }
  return rows;
}
