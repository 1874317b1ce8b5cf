import { describe, expect, it } from 'vitest';
import { findLoops } from '../../../src/config/destination-config.js';
import { readOtlpEnvironment } from '../../../src/config/otlp-environment.js';

function loops(endpoint: string, host: string, port = 4318): readonly string[] {
  const { destination } = readOtlpEnvironment({ OTEL_EXPORTER_OTLP_ENDPOINT: endpoint });
  return findLoops(
    destination === undefined ? [] : [destination],
    [{ host, port }],
    ['10.0.0.7', 'build-host', 'fe80::1'],
  );
}

describe('an endpoint that is the bridge itself', () => {
  it.each([
    ['http://127.0.0.1:4318', '127.0.0.1'],
    ['http://localhost:4318/', '127.0.0.1'],
    ['http://LOCALHOST.:4318/', '127.0.0.1'],
    ['http://[::1]:4318', '127.0.0.1'],
    ['http://0.0.0.0:4318', '127.0.0.1'],
    ['http://127.1:4318', '127.0.0.1'],
    ['http://[::ffff:127.0.0.1]:4318', '127.0.0.1'],
    ['http://localhost:4318', '::1'],
    ['http://127.0.0.1:4318', '0.0.0.0'],
    ['http://127.0.0.5:4318', '0.0.0.0'],
    ['http://10.0.0.7:4318', '0.0.0.0'],
    ['http://build-host:4318', '::'],
    ['http://[fe80::1]:4318', '::'],
    ['http://10.0.0.7:4318', '10.0.0.7'],
  ])('is found in %s when listening on %s', (endpoint, host) => {
    expect(loops(endpoint, host)).toEqual([expect.stringContaining('is run-bridge itself')]);
  });

  it('is found on the default port of the scheme', () => {
    expect(loops('http://localhost', '127.0.0.1', 80)).toHaveLength(1);
  });

  it.each([
    ['http://127.0.0.1:14318', '127.0.0.1'],
    ['http://collector:4318', '127.0.0.1'],
    ['http://10.0.0.7:4318', '127.0.0.1'],
    ['http://10.0.0.8:4318', '0.0.0.0'],
    ['http://127.0.0.1:4318', '10.0.0.7'],
  ])('is not %s when listening on %s', (endpoint, host) => {
    expect(loops(endpoint, host)).toEqual([]);
  });
});
