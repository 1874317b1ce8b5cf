import { describe, expect, test } from 'vitest';
import type { DestinationSettings } from '../../../src/config/destination-settings.js';
import { toDestinationConfig } from '../../../src/config/otlp-destinations.js';

const settings: DestinationSettings = {
  name: 'a',
  endpoint: null,
  tracesEndpoint: null,
  logsEndpoint: null,
  signals: ['traces', 'logs'],
  hasMetrics: false,
  headers: { key: 'value' },
  protocol: 'http/json',
  compression: 'gzip',
  timeoutMs: 5_000,
  maxBacklogAgeMs: null,
  traceUrl: null,
  redaction: null,
  mapping: {},
  resource: {},
  exporterModule: null,
  kafka: null,
};
const urls = (change: Partial<DestinationSettings>) =>
  Object.entries(toDestinationConfig({ ...settings, ...change }).endpoints).map(([signal, { url }]) => [signal, url]);

describe('a destination of the file', () => {
  test('gets the paths of OTLP appended to its endpoint', () => {
    const expected = [
      ['traces', 'http://a/otlp/v1/traces'],
      ['logs', 'http://a/otlp/v1/logs'],
    ];
    expect(urls({ endpoint: 'http://a/otlp' })).toEqual(expected);
    expect(urls({ endpoint: 'http://a/otlp/' })).toEqual(expected);
  });

  test("uses a signal's own endpoint as it is", () => {
    expect(urls({ endpoint: 'http://a', tracesEndpoint: 'http://b/in' })).toEqual([
      ['traces', 'http://b/in'],
      ['logs', 'http://a/v1/logs'],
    ]);
  });

  test('gets only the signals that it asks for, and those that have an endpoint', () => {
    expect(urls({ endpoint: 'http://a', signals: ['traces'] })).toEqual([['traces', 'http://a/v1/traces']]);
    expect(urls({ logsEndpoint: 'http://b' })).toEqual([['logs', 'http://b']]);
  });

  test('passes on how it is sent', () => {
    expect(toDestinationConfig({ ...settings, endpoint: 'http://a' }).endpoints.logs).toMatchObject({
      headers: { key: 'value' },
      timeoutMs: 5_000,
      compression: 'gzip',
      encoding: 'json',
    });
  });
});
