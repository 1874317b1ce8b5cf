import type { ConfigurationRow } from './configuration.js';
import type { DestinationSettings } from './destination-settings.js';
import { formatDuration } from './duration.js';
import { MASK, maskUrl } from './mask.js';
import { SETTINGS } from './settings.js';

/** A destination as rows of `run-bridge config`; header values and passwords in URLs are masked. */
export function destinationRows(destination: DestinationSettings, origin: string): ConfigurationRow[] {
  const row = (name: string, value: string) => ({ name: `destinations.${destination.name}.${name}`, value, origin });
  const endpoints = [
    ['endpoint', destination.endpoint],
    ['traces-endpoint', destination.tracesEndpoint],
    ['logs-endpoint', destination.logsEndpoint],
  ] as const;
  return [
    ...endpoints.flatMap(([name, url]) => (url === null ? [] : [row(name, maskUrl(url))])),
    ...(destination.exporterModule === null ? [] : [row('exporter', destination.exporterModule)]),
    row('signals', destination.signals.join(',')),
    ...Object.keys(destination.headers).map((name) => row(`headers.${name}`, MASK)),
    row('protocol', destination.protocol),
    row('compression', destination.compression),
    row('timeout', formatDuration(destination.timeoutMs)),
    ...(destination.maxBacklogAgeMs === null
      ? []
      : [row('max-backlog-age', SETTINGS['max-backlog-age'].format(destination.maxBacklogAgeMs))]),
    ...(destination.redaction === null ? [] : [row('redaction', destination.redaction)]),
    ...Object.entries(destination.mapping).map(([name, isOn]) => row(`mapping.${name}`, isOn ? 'on' : 'off')),
    ...Object.entries(destination.resource).map(([name, value]) => row(`resource.${name}`, String(value))),
  ];
}
