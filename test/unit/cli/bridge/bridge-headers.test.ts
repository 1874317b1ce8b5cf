import { describe, expect, it } from 'vitest';
import { bridgeHeaders } from '../../../../src/cli/bridge/bridge.js';

const BRIDGE = 'http://bridge:4318';
const headers = 'x-team=data,Authorization=Bearer%20rbt_b';

describe('what a request to a bridge carries', () => {
  it('is the token that is set for it', () => {
    expect(bridgeHeaders({ RUN_BRIDGE_TOKEN: ' rbt_a\n', OTEL_EXPORTER_OTLP_HEADERS: headers }, BRIDGE)).toEqual({
      authorization: 'Bearer rbt_a',
    });
  });

  it('is what the sender of telemetry has, where that goes to the same host', () => {
    const set = { OTEL_EXPORTER_OTLP_HEADERS: headers, RUN_BRIDGE_TOKEN: '' };
    expect(bridgeHeaders(set, BRIDGE)).toEqual({ authorization: 'Bearer rbt_b' });
    const endpoint = (url: string) => ({ ...set, OTEL_EXPORTER_OTLP_ENDPOINT: url });
    expect(bridgeHeaders(endpoint('http://bridge:4380'), BRIDGE)).toEqual({ authorization: 'Bearer rbt_b' });
    expect(bridgeHeaders(endpoint('https://backend.example'), BRIDGE)).toEqual({});
  });

  it('is nothing where nothing is set', () => {
    expect(bridgeHeaders({}, BRIDGE)).toEqual({});
    expect(bridgeHeaders({ OTEL_EXPORTER_OTLP_HEADERS: 'x-team=data' }, BRIDGE)).toEqual({});
  });

  it('is refused where it can be no token', () => {
    expect(() => bridgeHeaders({ RUN_BRIDGE_TOKEN: 'Bearer rbt_a' }, BRIDGE)).toThrow(
      'RUN_BRIDGE_TOKEN: contains a space or a line break; set it to the token alone',
    );
  });
});
